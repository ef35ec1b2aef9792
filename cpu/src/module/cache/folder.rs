//! A folder of files of bounded size, for all processes of one user. The files that were not used for the longest are removed.
//!
//! A file gets its name once it is whole. Files contain machine code: what others could have written is not used.

use std::ffi::CString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use std::{fmt, process};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, renameat, statat, unlinkat,
};
use rustix::process::{Resource, geteuid, getrlimit};

/// What the names end in of files that may be removed.
const EXTENSION: &str = ".zeusm";

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
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
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
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
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
    pub fn write(&self, name: &str, bytes: &[u8]) {
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
        const NAME: &str = "try";
        self.replace(NAME, &[0; 4096])?;
        Ok(unlinkat(&self.folder, full(NAME), AtFlags::empty())?)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // Processes in containers may have the same number.
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let temporary = full(&format!("{}-{}", process::id(), now.as_nanos()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
        let written = File::from(file).write_all(bytes).and_then(|()| {
            Ok(renameat(
                &self.folder,
                &temporary,
                &self.folder,
                full(name),
            )?)
        });
        if written.is_err() {
            let _ = unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written
    }

    /// Removes the files that were not used for the longest, as long as there are too many. What a process left that ended while
    /// it wrote is one of them.
    fn remove_oldest(&self) {
        let mut files = self.files();
        let mut bytes: u64 = files.iter().map(|(_, about)| size(about)).sum();
        files.sort_by_key(|(_, about)| (about.st_mtime, about.st_mtime_nsec));
        for (name, about) in files {
            if bytes <= self.limit {
                break;
            }
            // Another process may have removed it.
            let _ = unlinkat(&self.folder, &name, AtFlags::empty());
            bytes -= size(&about);
        }
    }

    /// How many files there are.
    pub fn content(&self) -> Content {
        let files = self.files();
        Content {
            files: files.len(),
            bytes: files.iter().map(|(_, about)| size(about)).sum(),
            limit: self.limit,
        }
    }

    fn files(&self) -> Vec<(CString, Stat)> {
        let entries = Dir::read_from(&self.folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_owned());
        names
            .filter(|name| name.to_bytes().ends_with(EXTENSION.as_bytes()))
            .filter_map(|name| {
                let about = statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                Some((name, about))
            })
            .collect()
    }
}

fn full(name: &str) -> String {
    format!("{name}{EXTENSION}")
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
