//! Memory files, which processes can share.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::AsRawFd;

use rustix::fs::{MemfdFlags, SealFlags};
use zeusm_process::OwnFile;

use super::error::ShareError;
use crate::system::PAGE;

/// The name of a memory file, by which an importer recognises this runtime's files.
const FILE_NAME: &str = "zeusm";

/// A new memory file that can neither shrink nor grow, so that access to a mapping of it never faults.
pub fn memory_file(length: u64) -> Result<File, ShareError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file =
        rustix::fs::memfd_create(FILE_NAME, flags).map_err(ShareError::of("memfd_create"))?;
    let file = File::from(file);
    // Beyond the limit the system would kill the process with SIGXFSZ.
    let most = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if most.is_some_and(|most| most < length) {
        return Err(ShareError::new("ftruncate of a memory file", libc::EFBIG));
    }
    file.set_len(length)
        .map_err(ShareError::of("ftruncate of a memory file"))?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
        .map_err(ShareError::of("sealing a memory file"))?;
    Ok(file)
}

/// Whether the system has memory files.
pub fn has_memory_files() -> bool {
    memory_file(PAGE as u64).is_ok()
}

/// As [`memory_file`], of which the runtime keeps the descriptor.
pub fn own_memory_file(length: u64) -> Result<OwnFile, ShareError> {
    OwnFile::new(memory_file(length)?).map_err(ShareError::of("fstat"))
}

/// Whether `memory_file` created the file: it has this runtime's name and seals, so it cannot shrink under a mapping.
pub fn is_memory_file(file: &File) -> bool {
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals == all) && has_name(file)
}

/// Whether a memory file has this runtime's name; true where /proc is not mounted and the seals have to suffice.
fn has_name(file: &File) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let expected = format!("/memfd:{FILE_NAME} (deleted)");
    link.map_or(true, |name| name.as_os_str() == expected.as_str())
}

/// Another descriptor of `file` with a position of its own.
pub fn reopen(file: &File, position: u64) -> Result<File, ShareError> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(ShareError::of("open of /proc/self/fd"))?;
    file.seek(SeekFrom::Start(position))
        .map_err(ShareError::of("lseek"))?;
    Ok(file)
}
