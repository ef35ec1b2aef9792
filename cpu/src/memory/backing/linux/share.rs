//! Moving private memory into a memory file, which another process can map, while the program goes on using it.
//!
//! Private memory is faster: the first touch of 64 MiB runs at 6.5 GB/s with its huge pages and at 0.8 GB/s in a memory
//! file, for which most systems allow none (measured on Linux 6.18, `shmem_enabled` never). So memory stays private
//! until a handle is requested, and is then moved into a memory file.
//!
//! The addresses stay the same and no write is lost: the pages are protected from writes while they are copied, and a
//! thread that writes to one blocks in a page fault until the file is mapped there. The pages stay in place until that
//! mapping replaces them, so an error before leaves the memory as it was. This needs `userfaultfd`; where the system
//! forbids it, memory files are used from the start. One limitation: where an unprivileged process can only handle faults
//! of user mode, a system call that writes to the range during the move fails with `EFAULT`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::SeekFrom;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::mm::UserfaultfdFlags;
use zeusm_process::Lazy;

use super::error::ShareError;
use super::mapping::{HUGE_PAGE, Mapping};
use super::memory_file::memory_file;
use super::room::has_room_for;
use crate::memory::backing::pages::Pages;
use crate::system::PAGE;

/// Requests and numbers of Linux's `userfaultfd.h`. Each request takes a structure of words.
const GROUP: u8 = 0xaa;
const API: Opcode = opcode::read_write::<[u64; 3]>(GROUP, 0x3f);
const REGISTER: Opcode = opcode::read_write::<[u64; 4]>(GROUP, 0);
const UNREGISTER: Opcode = opcode::read::<[u64; 2]>(GROUP, 1);
const WAKE: Opcode = opcode::read::<[u64; 2]>(GROUP, 2);
const PROTECT: Opcode = opcode::read_write::<[u64; 3]>(GROUP, 6);
const VERSION: u64 = 0xaa;
const FEATURE_PROTECT: u64 = 1;
const REGISTER_PROTECT: u64 = 2;
const DO_PROTECT: u64 = 1;
const USER_MODE_ONLY: u32 = 1;

/// Whether the system allows moving private memory into a file. Tries it on a page, and caches a permanent result.
pub fn can_move() -> Result<(), ShareError> {
    static KNOWN: Lazy<Result<(), ShareError>> = Lazy::new();
    if let Some(known) = KNOWN.get() {
        return *known;
    }
    let tried = try_to_move();
    match tried {
        Err(error) if error.is_transient() => tried,
        _ => *KNOWN.get_or_make(|| tried),
    }
}

/// Whether new memory of this process can be exported; a transient error does not count.
pub fn can_be_exported() -> bool {
    memory_file(PAGE as u64)
        .and_then(|_| can_still_move())
        .map_or_else(ShareError::is_transient, |_| true)
}

/// Whether private memory can still be moved: a filter of system calls that is set later may forbid it. Where it never
/// could, memory is in a file already.
fn can_still_move() -> Result<(), ShareError> {
    match can_move() {
        Ok(()) => try_to_move(),
        Err(_) => Ok(()),
    }
}

fn try_to_move() -> Result<(), ShareError> {
    let page = Mapping::anonymous(PAGE, PAGE).ok_or(ShareError::new("mmap", libc::ENOMEM))?;
    move_to(page.pages(), &memory_file(PAGE as u64)?)
}

/// Moves what `memory` holds into the beginning of `file`, which has no bytes but zeros, and maps that at the same addresses.
///
/// # Errors
/// The system's error, or that of a machine without room for a copy; the memory is unchanged then.
pub fn move_to(memory: Pages<'_>, file: &File) -> Result<(), ShareError> {
    let protection = Protection::new(memory)?;
    let chunks = chunks_to_write(memory);
    let length: usize = chunks.iter().map(|(_, chunk)| chunk.len()).sum();
    // Until the file replaces the pages there are two copies, and the system would kill a process beyond its limit.
    if !has_room_for(length as u64) {
        let shortage = ShareError::new("copying it into a memory file", libc::ENOMEM);
        return Err(shortage);
    }
    write(&chunks, file).map_err(ShareError::of("pwrite to a memory file"))?;
    // SAFETY: the file has the same bytes, and threads that write to the pages block until it is there.
    unsafe { memory.replace(file) }.map_err(ShareError::of("mmap"))?;
    drop(protection);
    Ok(())
}

/// The parts of the first `length` bytes of a file that hold data; the rest is zero.
pub fn extents(file: &File, length: u64) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut from = 0;
    while from < length {
        // An error means that there is no more data.
        let Ok(start) = rustix::fs::seek(file, SeekFrom::Data(from)) else {
            break;
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(length);
        if start < length {
            found.push(start..end.min(length));
        }
        from = end.max(start + 1);
    }
    found
}

/// The chunks that are not zero, with their offsets; a new file is zero everywhere, and takes memory only where it was written.
/// Threads that write to the memory must block.
fn chunks_to_write(memory: Pages<'_>) -> Vec<(u64, &[u8])> {
    // SAFETY: the pages are mapped, and threads that write to them block.
    let bytes =
        unsafe { std::slice::from_raw_parts(memory.address() as *const u8, memory.length()) };
    let offsets = (0..).step_by(HUGE_PAGE);
    let chunks = offsets.zip(bytes.chunks(HUGE_PAGE));
    chunks
        .filter(|(_, chunk)| chunk.iter().any(|&byte| byte != 0))
        .collect()
}

fn write(chunks: &[(u64, &[u8])], file: &File) -> io::Result<()> {
    chunks
        .iter()
        .try_for_each(|(offset, chunk)| file.write_all_at(chunk, *offset))
}

/// While it lives, threads that write to the range block. When it is dropped, they write to the range as it is then.
struct Protection {
    faults: OwnedFd,
    /// The first address, and the length.
    range: [u64; 2],
}

impl Protection {
    fn new(memory: Pages<'_>) -> Result<Self, ShareError> {
        let faults = open().map_err(ShareError::of("userfaultfd"))?;
        let [start, length] = [memory.address(), memory.length()].map(|it| it as u64);
        // SAFETY: the requests take structures of so many words, and the pages are mapped.
        unsafe {
            control::<API, _>(&faults, [VERSION, FEATURE_PROTECT, 0])
                .map_err(ShareError::of("UFFDIO_API"))?;
            control::<REGISTER, _>(&faults, [start, length, REGISTER_PROTECT, 0])
                .map_err(ShareError::of("UFFDIO_REGISTER"))?;
        }
        let range = [start, length];
        let protection = Self { faults, range };
        touch(memory);
        // SAFETY: as above.
        unsafe { control::<PROTECT, _>(&protection.faults, [start, length, DO_PROTECT]) }
            .map_err(ShareError::of("UFFDIO_WRITEPROTECT"))?;
        Ok(protection)
    }
}

impl Drop for Protection {
    fn drop(&mut self) {
        // Closing does both, but not while a child that was forked meanwhile has the descriptor as well. Pages of a file
        // that replaced the range are not registered.
        // SAFETY: both requests take the range.
        unsafe {
            let _ = control::<UNREGISTER, _>(&self.faults, self.range);
            let _ = control::<WAKE, _>(&self.faults, self.range);
        }
    }
}

/// Reads a byte of each page. Linux protects only pages that exist, if only as the page of zeros.
fn touch(memory: Pages<'_>) {
    for address in (memory.address()..memory.address() + memory.length()).step_by(PAGE) {
        // SAFETY: the pages are mapped. Other threads may write the byte, so it is read as an atomic.
        unsafe { &*(address as *const AtomicU8) }.load(Ordering::Relaxed);
    }
}

/// Opens a descriptor for faults in user and kernel mode, or in user mode only where the process lacks the privilege.
fn open() -> io::Result<OwnedFd> {
    let own = UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
    // SAFETY: faults of no page go to the descriptor until one is registered, and only `Protection` registers pages.
    let open = |flags| unsafe { rustix::mm::userfaultfd(UserfaultfdFlags::CLOEXEC | flags) };
    Ok(open(UserfaultfdFlags::empty()).or_else(|_| open(own))?)
}

/// # Safety
/// The request must be one that reads and writes so many words, about pages that are mapped.
unsafe fn control<const REQUEST: Opcode, const WORDS: usize>(
    faults: &OwnedFd,
    mut words: [u64; WORDS],
) -> io::Result<()> {
    // SAFETY: the caller vouches for the structure.
    unsafe { ioctl(faults, Updater::<REQUEST, _>::new(&mut words)) }.map_err(Into::into)
}

#[cfg(test)]
mod tests;
