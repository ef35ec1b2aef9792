//! A folder of modules of bounded size, for all processes of one user. The modules that were not used for the longest are removed.
//!
//! A file gets its name once it is whole. Files contain machine code: what others could have written is not used.

use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use std::{fmt, process};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, renameat, statat, unlinkat,
};
use rustix::process::{Resource, geteuid, getrlimit};

/// A module's name is 16 hexadecimal digits with this behind them.
const MODULE: &str = ".zeusm";
/// The name of a file that is being written is 32, with this behind them.
const UNFINISHED: &str = ".zeusm-new";
/// After so long, a process that writes a file has ended.
const LONGEST_WRITE: Duration = Duration::from_secs(24 * 3600);

/// How many bytes this process and those that it was forked from have written.
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// The size is looked at again after so large a part of the limit was written: on a network's file system that takes long.
const PARTS: u64 = 16;

/// An open folder, which nobody but this user can write to.
pub struct Folder {
    folder: OwnedFd,
    limit: u64,
}

/// What is in a folder.
pub struct Content {
    files: usize,
    bytes: u64,
    limit: u64,
}

impl fmt::Display for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (used, limit) = (self.bytes >> 20, self.limit >> 20);
        write!(formatter, "{} modules, {used} of {limit} MiB", self.files)
    }
}

impl Folder {
    /// Opens a folder with up to `limit` bytes, and creates it unless it exists.
    ///
    /// # Errors
    /// The system's, and that of a folder that others can write to.
    pub fn open(path: &Path, limit: u64) -> io::Result<Self> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| match error.kind() {
            // A link to nothing, too.
            io::ErrorKind::AlreadyExists => io::Error::other("it is not a folder"),
            _ => error,
        })?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty())?;
        let about = fstat(&folder)?;
        if !is_own(&about) {
            Err(io::Error::other("it belongs to another user"))
        } else if others_can_write(&about) {
            Err(io::Error::other("other users can write to it"))
        } else {
            Ok(Self { folder, limit })
        }
    }

    /// The bytes of a file, which counts as used now.
    pub fn read(&self, name: u64) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.folder, full(name), flags, Mode::empty()).ok()?;
        let about = fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        let is_safe = is_file && is_own(&about) && !others_can_write(&about);
        if !is_safe || size(&about) > self.limit {
            return None;
        }
        let mut file = File::from(file);
        let _ = file.set_modified(SystemTime::now());
        let mut bytes = Vec::with_capacity(usize::try_from(size(&about)).ok()?);
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes a file, in place of one of this name, and removes others above the limit, which processes may exceed by a
    /// sixteenth each. A failure leaves the folder as it was.
    pub fn write(&self, name: u64, bytes: &[u8]) {
        let size = bytes.len() as u64;
        // The system would end the process at a larger file than its limit.
        let largest = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        if size > self.limit.min(largest) || self.replace(name, bytes).is_err() {
            return;
        }
        let before = WRITTEN.fetch_add(size, Ordering::Relaxed);
        let part = (self.limit / PARTS).max(1);
        if before == 0 || before / part != (before + size) / part {
            self.remove_oldest();
        }
    }

    /// Writes a small file and removes it.
    ///
    /// # Errors
    /// The system's, such as that of a full file system.
    pub fn try_to_write(&self) -> io::Result<()> {
        let name = temporary();
        let written = self.create(&name, &[0; 4096]);
        self.remove(&name);
        written
    }

    fn replace(&self, name: u64, bytes: &[u8]) -> io::Result<()> {
        let unfinished = temporary();
        let written = self.create(&unfinished, bytes).and_then(|()| {
            let folder = &self.folder;
            Ok(renameat(folder, &unfinished, folder, full(name))?)
        });
        if written.is_err() {
            self.remove(&unfinished);
        }
        written
    }

    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        File::from(file).write_all(bytes)
    }

    /// Another process may have removed it.
    fn remove(&self, name: impl rustix::path::Arg) {
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Removes the modules that were not used for the longest, as long as there are too many, and what processes left that ended
    /// while they wrote.
    fn remove_oldest(&self) {
        for (name, about) in self.files(32, UNFINISHED) {
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            let then = Duration::from_secs(about.st_mtime.try_into().unwrap_or_default());
            if now.saturating_sub(then) > LONGEST_WRITE {
                self.remove(&name);
            }
        }
        let mut modules = self.files(16, MODULE);
        let mut bytes: u64 = modules.iter().map(|(_, about)| size(about)).sum();
        modules.sort_by_key(|(_, about)| (about.st_mtime, about.st_mtime_nsec));
        for (name, about) in modules {
            if bytes <= self.limit {
                break;
            }
            self.remove(&name);
            bytes -= size(&about);
        }
    }

    /// How many modules there are.
    pub fn content(&self) -> Content {
        let files = self.files(16, MODULE);
        Content {
            files: files.len(),
            bytes: files.iter().map(|(_, about)| size(about)).sum(),
            limit: self.limit,
        }
    }

    /// The files whose names are so many digits and `end`.
    fn files(&self, digits: usize, end: &str) -> Vec<(CString, Stat)> {
        let entries = Dir::read_from(&self.folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_owned());
        names
            .filter(|name| is_digits(name, digits, end))
            .filter_map(|name| {
                let about = statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                Some((name, about))
            })
            .collect()
    }
}

fn full(name: u64) -> String {
    format!("{name:016x}{MODULE}")
}

/// The name of a file that is being written. Processes in containers may have the same number.
fn temporary() -> String {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("{:08x}{:024x}{UNFINISHED}", process::id(), now.as_nanos())
}

/// Whether `name` is so many hexadecimal digits with `end` behind them, as no file of the user's is.
fn is_digits(name: &CStr, count: usize, end: &str) -> bool {
    let digits = name.to_bytes().strip_suffix(end.as_bytes());
    digits.is_some_and(|it| it.len() == count && it.iter().all(u8::is_ascii_hexdigit))
}

fn is_own(about: &Stat) -> bool {
    about.st_uid == geteuid().as_raw()
}

fn others_can_write(about: &Stat) -> bool {
    Mode::from_raw_mode(about.st_mode).intersects(Mode::WGRP | Mode::WOTH)
}

fn size(about: &Stat) -> u64 {
    about.st_size.cast_unsigned()
}

#[cfg(test)]
mod tests;
