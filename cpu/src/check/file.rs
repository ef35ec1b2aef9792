//! The file of the report.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::OFlags;

/// The most links that are followed, as by the kernel.
const MOST_LINKS: usize = 40;

/// The path of this process's report: `%p` is the process id.
pub fn of_this_process(path: &Path) -> PathBuf {
    let mut rest = path.as_os_str().as_bytes();
    let mut own = Vec::new();
    while let Some(at) = rest.windows(2).position(|it| it == b"%p") {
        own.extend_from_slice(&rest[..at]);
        own.extend_from_slice(process::id().to_string().as_bytes());
        rest = &rest[at + 2..];
    }
    own.extend_from_slice(rest);
    OsString::from_vec(own).into()
}

/// Writes the report. A regular file has all of it at any time; a link stays, and the file that it names is written. A pipe,
/// a device, or an open file of the process (`/dev/stdout`) gets the report once, at the end of the process.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, text: &[u8], is_end: bool) -> io::Result<()> {
    let is_file = fs::metadata(path).map_or(true, |it| it.is_file());
    let Some(path) = target(path).filter(|_| is_file) else {
        return if is_end { stream(path, text) } else { Ok(()) };
    };
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(format!(".{}.unfinished", process::id()));
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path)
}

/// The path that links lead to; `None` for an open file of a process.
fn target(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(link) = fs::read_link(&path) else {
            break;
        };
        if path.starts_with("/proc") || path.starts_with("/dev/fd") {
            return None;
        }
        path.pop();
        path.push(link);
    }
    Some(path)
}

/// Writes into a file that exists. The opening of a pipe that no process reads fails, instead of waiting for one.
fn stream(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .append(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let flags = rustix::fs::fcntl_getfl(file.as_fd())?;
    rustix::fs::fcntl_setfl(file.as_fd(), flags - OFlags::NONBLOCK)?;
    file.write_all(text)
}
