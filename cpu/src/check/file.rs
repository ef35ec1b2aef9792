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

/// Writes the report, over an earlier one in a regular file. A pipe, a device, or an open file of the process (`/dev/stdout`) gets it
/// once, at the end of the process. The opening of a pipe that no process reads fails, instead of waiting for one.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, text: &[u8], is_end: bool) -> io::Result<()> {
    let is_special = path.starts_with("/dev") || path.starts_with("/proc");
    if !is_special && fs::metadata(path).map_or(true, |it| it.is_file()) {
        return fs::write(path, text);
    }
    if !is_end {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .append(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let flags = rustix::fs::fcntl_getfl(file.as_fd())?;
    rustix::fs::fcntl_setfl(file.as_fd(), flags - OFlags::NONBLOCK)?;
    file.write_all(text)
}
