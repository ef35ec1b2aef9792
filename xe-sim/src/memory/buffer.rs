//! Buffer objects (GEM), backed by memfds, so that PRIME passes real descriptors between processes.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The lowest descriptor number of a buffer. Kernel buffers have no descriptors, so the simulator must not change the
/// numbers that a program gets for its own files.
const FIRST_DESCRIPTOR: RawFd = 200;

/// The accounting of VRAM: its size and the bytes in use by buffers.
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

/// A buffer object, mapped into the process for the engine threads.
#[derive(Debug)]
pub(crate) struct Buffer {
    file: File,
    bytes: NonNull<u8>,
    size: u64,
    vram: Option<Arc<Vram>>,
}

// SAFETY: the mapping is valid until the buffer is dropped. It is only accessed through raw pointers and atomics; the
// program and its command streams synchronise the accesses, as on a GPU.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Creates a buffer, in VRAM if `vram` is given.
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

    /// Imports a buffer from an exported descriptor.
    pub(crate) fn import(descriptor: RawFd) -> io::Result<Self> {
        // SAFETY: `dup` rejects an invalid descriptor.
        let file = own(unsafe { libc::dup(descriptor) })?;
        let size = file.metadata()?.len();
        Ok(Self {
            bytes: map(&file, size)?,
            file,
            size,
            vram: None,
        })
    }

    /// Exports the buffer as a new descriptor.
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

    /// The inode, which identifies the buffer across processes.
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

    /// The address of a byte. `offset` is within the buffer, which the bind has checked.
    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.size);
        self.bytes.as_ptr().wrapping_add(offset as usize)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the buffer owns the mapping, and address spaces own the buffer while it is bound.
        unsafe { libc::munmap(self.bytes.as_ptr().cast(), self.size as usize) };
        if let Some(vram) = &self.vram {
            vram.used.fetch_sub(self.size, Ordering::Relaxed);
        }
    }
}

/// Moves a new descriptor to a number from [`FIRST_DESCRIPTOR`] on.
fn own(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller has just created the descriptor and does not own it otherwise.
    let low = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: `low` is open.
    let high = unsafe { libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR) };
    if high < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above created the descriptor.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(high) }))
}

fn map(file: &File, size: u64) -> io::Result<NonNull<u8>> {
    // SAFETY: the kernel chooses the address, so no mapping is replaced.
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
