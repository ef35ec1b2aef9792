//! Buffer objects (GEM): memory files, so that PRIME passes real descriptors from process to process.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors of buffers start here: the kernel's buffers take none, so a program's own numbers stay as they are.
const FIRST_DESCRIPTOR: RawFd = 200;

/// The device's own memory: how much there is, and how much of it buffers hold.
#[derive(Debug)]
pub(crate) struct Vram {
    total: u64,
    used: AtomicU64,
}

impl Vram {
    pub(crate) fn new(total: u64) -> Self {
        Self {
            total,
            used: AtomicU64::new(0),
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, size: u64) -> bool {
        let fits = |used: u64| {
            used.checked_add(size)
                .filter(|&together| together <= self.total)
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }
}

/// One buffer, mapped for the engines.
#[derive(Debug)]
pub(crate) struct Buffer {
    file: File,
    bytes: NonNull<u8>,
    size: u64,
    vram: Option<Arc<Vram>>,
}

// SAFETY: the mapping is shared memory that stays until the buffer is dropped; who reads and writes it, and when, is up
// to the program and its command streams, as on a GPU.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A new one, in the device's own memory where `vram` is given.
    pub(crate) fn new(size: u64, vram: Option<&Arc<Vram>>) -> io::Result<Self> {
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(c"xe-sim".as_ptr(), libc::MFD_CLOEXEC) };
        let file = own(descriptor)?;
        file.set_len(size)?;
        if let Some(vram) = vram
            && !vram.take(size)
        {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let vram = vram.cloned();
        let release = |error| {
            if let Some(vram) = &vram {
                vram.used.fetch_sub(size, Ordering::Relaxed);
            }
            error
        };
        let bytes = map(&file, size).map_err(release)?;
        Ok(Self {
            file,
            bytes,
            size,
            vram,
        })
    }

    /// The buffer behind a descriptor that another process has exported.
    pub(crate) fn import(descriptor: RawFd) -> io::Result<Self> {
        // SAFETY: duplicating takes any number.
        let file = own(unsafe { libc::dup(descriptor) })?;
        let size = file.metadata()?.len();
        Ok(Self {
            bytes: map(&file, size)?,
            file,
            size,
            vram: None,
        })
    }

    /// A descriptor for another process.
    pub(crate) fn export(&self, close_on_exec: bool) -> io::Result<RawFd> {
        let command = if close_on_exec {
            libc::F_DUPFD_CLOEXEC
        } else {
            libc::F_DUPFD
        };
        // SAFETY: the descriptor is open, since `file` owns it.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), command, 3) } {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(descriptor),
        }
    }

    /// What tells two buffers apart, over processes.
    pub(crate) fn inode(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn is_vram(&self) -> bool {
        self.vram.is_some()
    }

    /// The address of a byte; `offset` lies inside, which binding has checked.
    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.size);
        self.bytes.as_ptr().wrapping_add(offset as usize)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this buffer's, and address spaces hold the buffer while it is bound.
        unsafe { libc::munmap(self.bytes.as_ptr().cast(), self.size as usize) };
        if let Some(vram) = &self.vram {
            vram.used.fetch_sub(self.size, Ordering::Relaxed);
        }
    }
}

/// Owns a new descriptor under a number that is out of the program's way.
fn own(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller has just made it.
    let low = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: `low` is open.
    let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR) };
    if high < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made by the call above.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(high) }))
}

fn map(file: &File, size: u64) -> io::Result<NonNull<u8>> {
    // SAFETY: the kernel chooses the place, so no mapping is replaced.
    let bytes = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if bytes == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(bytes.cast()).ok_or(io::Error::from_raw_os_error(libc::ENOMEM))
}
