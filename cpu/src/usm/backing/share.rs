//! Turning private memory into memory that another process can map, while the program goes on using it.
//!
//! Private memory is faster from its birth on: the first touch of 64 MiB runs at 6.5 GB/s with its huge pages and at
//! 0.8 GB/s in a memory file, for which most systems allow none (measured on Linux 6.18, `shmem_enabled` never). So
//! memory stays private until somebody asks for a handle, and is then moved into a memory file.
//!
//! The addresses stay, and no write is lost: the pages leave in one step, after which whoever touches the range waits
//! in a page fault until the file is mapped there. That takes `userfaultfd`; where the system forbids it, memory files
//! are used from the beginning. One thing cannot wait: where the system lets an unprivileged process catch its own
//! faults only, a system call that is told to read or write the range meanwhile fails with `EFAULT`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use linux_raw_sys::{general, ioctl};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::UserfaultfdFlags;

use super::mapping::Mapping;
use super::{HUGE_PAGE, PAGE};

/// A new memory file that can neither shrink nor grow, so that a mapping of it never loses its ground.
pub fn memory_file(length: u64) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("zeusm", flags)?);
    file.set_len(length)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Whether the system lets private memory be moved into a file: tried once, on a page.
pub fn can_move() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let page = Mapping::anonymous(PAGE, PAGE);
        let file = memory_file(PAGE as u64);
        matches!((page, file), (Some(page), Ok(file)) if move_to(&page, &file).is_ok())
    })
}

/// Moves what `memory` holds into the beginning of `file` and maps that at the same addresses.
///
/// # Errors
/// What the system answered; the memory is as it was then.
pub fn move_to(memory: &Mapping, file: &File) -> io::Result<()> {
    let catch = Catch::new(memory)?;
    let aside = memory.set_aside()?;
    match write(&aside, file).and_then(|()| memory.replace(file)) {
        Ok(()) => {
            drop(catch);
            Ok(())
        }
        Err(error) => {
            aside.put_back(memory)?;
            Err(error)
        }
    }
}

/// Writes all that is not zero; a new file is zero everywhere, and takes memory only where it was written.
fn write(memory: &Mapping, file: &File) -> io::Result<()> {
    // SAFETY: the mapping is alive, and its address is known to nobody who could write to it.
    let bytes =
        unsafe { std::slice::from_raw_parts(memory.address() as *const u8, memory.length()) };
    for (index, chunk) in bytes.chunks(HUGE_PAGE).enumerate() {
        if chunk.iter().any(|&byte| byte != 0) {
            file.write_all_at(chunk, (index * HUGE_PAGE) as u64)?;
        }
    }
    Ok(())
}

/// While it lives, whoever touches pages of the range that are not there waits.
struct Catch {
    faults: OwnedFd,
    range: general::uffdio_range,
}

impl Catch {
    fn new(memory: &Mapping) -> io::Result<Self> {
        let faults = open()?;
        let mut api = general::uffdio_api {
            api: u64::from(general::UFFD_API),
            features: 0,
            ioctls: 0,
        };
        control(&faults, ioctl::UFFDIO_API, &mut api)?;
        let range = general::uffdio_range {
            start: memory.address() as u64,
            len: memory.length() as u64,
        };
        let mut register = general::uffdio_register {
            range,
            mode: u64::from(general::UFFDIO_REGISTER_MODE_MISSING),
            ioctls: 0,
        };
        control(&faults, ioctl::UFFDIO_REGISTER, &mut register)?;
        Ok(Self { faults, range })
    }
}

impl Drop for Catch {
    fn drop(&mut self) {
        // Closing wakes too, but not while a child that was forked meanwhile has the descriptor as well.
        let _ = control(&self.faults, ioctl::UFFDIO_WAKE, &mut self.range);
    }
}

/// Faults of system calls as well, where the process may; its own otherwise.
fn open() -> io::Result<OwnedFd> {
    // SAFETY: it is used for mappings of ours only, whose faults end when it is dropped.
    let all = unsafe { rustix::mm::userfaultfd(UserfaultfdFlags::CLOEXEC) };
    Ok(match all {
        Ok(faults) => faults,
        Err(_) => {
            let own = UserfaultfdFlags::from_bits_retain(general::UFFD_USER_MODE_ONLY);
            // SAFETY: as above.
            unsafe { rustix::mm::userfaultfd(UserfaultfdFlags::CLOEXEC | own) }?
        }
    })
}

fn control<T>(faults: &OwnedFd, request: u32, argument: &mut T) -> io::Result<()> {
    // SAFETY: each request is made with the structure that it reads and writes.
    let answer = unsafe {
        libc::ioctl(
            faults.as_raw_fd(),
            libc::Ioctl::from(request),
            std::ptr::from_mut(argument),
        )
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
