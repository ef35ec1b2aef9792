//! Buffer objects (GEM), backed by memfds, so that PRIME passes real descriptors between processes. The name of a memfd marks
//! it as a buffer and says where the buffer is, as every process that imports it must know both.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use zeusm_process::duplicate;

/// The lowest descriptor number of a buffer. Kernel buffers have no descriptors, so the simulator must not change the
/// numbers that a program gets for its own files.
const FIRST_DESCRIPTOR: RawFd = 200;

/// The name of the memfd of a buffer in system memory.
const SYSTEM: &str = "xe-sim";
/// The name of the memfd of a buffer in VRAM, without the PCI address of its GPU.
const LOCAL: &str = "xe-sim vram ";

/// The accounting of the VRAM of a GPU: its size and the bytes in use by buffers.
#[derive(Debug)]
pub(crate) struct Vram {
    /// The name of the memfds of buffers in it.
    name: String,
    total: u64,
    used: AtomicU64,
}

impl Vram {
    pub(crate) fn new(total: u64, pci: &str) -> Self {
        Self {
            name: format!("{LOCAL}{pci}"),
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
    is_vram: bool,
    /// Where the buffer is accounted for, which an imported buffer is not.
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
        let name = vram.map_or(SYSTEM, |vram| &vram.name);
        let file = own(memfd_create(name, MemfdFlags::CLOEXEC)?)?;
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
            is_vram: vram.is_some(),
            vram,
        })
    }

    /// Imports a buffer from an exported descriptor. `vram` is that of the importing GPU: the VRAM of another GPU is accessed
    /// like system memory. As in the kernel, a descriptor of anything but a buffer is an invalid argument.
    pub(crate) fn import(descriptor: RawFd, vram: Option<&Arc<Vram>>) -> io::Result<Self> {
        let file = duplicate(descriptor).ok_or(Errno::BADF)?;
        let file = own(file)?;
        let name = memfd_name(&file)?
            .filter(|name| name == SYSTEM || name.starts_with(LOCAL))
            .ok_or(io::Error::from_raw_os_error(libc::EINVAL))?;
        let size = file.metadata()?.len();
        Ok(Self {
            bytes: map(&file, size)?,
            file,
            size,
            is_vram: vram.is_some_and(|vram| vram.name == name),
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

    /// The device and the inode of the memfd, which identify the buffer across processes.
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        let metadata = self.file.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn is_vram(&self) -> bool {
        self.is_vram
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

/// Another descriptor of a buffer's file, with a number from [`FIRST_DESCRIPTOR`] on.
fn own(file: impl AsFd) -> io::Result<File> {
    Ok(fcntl_dupfd_cloexec(file, FIRST_DESCRIPTOR)?.into())
}

/// The name of a memfd; `None` for any other file, unless the root folder has a file with the name of a memfd's link.
fn memfd_name(file: &File) -> io::Result<Option<String>> {
    let link = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    Ok(link
        .to_str()
        .and_then(|link| link.strip_prefix("/memfd:")?.strip_suffix(" (deleted)"))
        .map(str::to_owned))
}

fn map(file: &File, size: u64) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: the kernel chooses the address, so no mapping is replaced.
    let bytes = unsafe { mmap(ptr::null_mut(), size as usize, access, flags, file, 0) }?;
    NonNull::new(bytes.cast()).ok_or(Errno::NOMEM.into())
}
