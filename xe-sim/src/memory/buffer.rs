//! Buffer objects (GEM), backed by memfds, so that PRIME passes real descriptors between processes. The name of a memfd marks
//! it as a buffer and says where the buffer is, as every process that imports it must know both.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create, readlink};
use rustix::io::{Errno, FdFlags, Result, fcntl_dupfd_cloexec, fcntl_setfd};
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
    pub(crate) total: u64,
    used: &'static AtomicU64,
}

impl Vram {
    /// `shared` is a file in which all processes count the bytes in use.
    pub(crate) fn new(total: u64, pci: &str, shared: Option<&str>) -> Self {
        let own = || &*Box::leak(Box::default());
        Self {
            name: format!("{LOCAL}{pci}"),
            total,
            used: shared.map_or_else(own, |path| counter(path).expect("a file of 8 bytes")),
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, size: u64) -> Result<()> {
        let fits = |used: u64| {
            used.checked_add(size)
                .filter(|&together| together <= self.total)
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_or(Err(Errno::NOMEM), |_| Ok(()))
    }
}

/// The number in a file of 8 bytes, mapped for all processes.
fn counter(path: &str) -> io::Result<&'static AtomicU64> {
    let file = File::options().read(true).write(true).open(path)?;
    let bytes = map(&file, size_of::<AtomicU64>() as u64)?;
    // SAFETY: the mapping has the file's bytes, which are only used as this number, and is never unmapped.
    Ok(unsafe { bytes.cast::<AtomicU64>().as_ref() })
}

/// A buffer object, mapped into the process for the engine threads.
#[derive(Debug)]
pub(crate) struct Buffer {
    file: OwnedFd,
    bytes: NonNull<u8>,
    pub(crate) size: u64,
    pub(crate) is_vram: bool,
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
    pub(crate) fn new(size: u64, vram: Option<&Arc<Vram>>) -> Result<Self> {
        let name = vram.map_or(SYSTEM, |vram| &vram.name);
        let file = own(memfd_create(name, MemfdFlags::CLOEXEC)?)?;
        ftruncate(&file, size)?;
        let mut buffer = Self {
            bytes: map(&file, size)?,
            file,
            size,
            is_vram: vram.is_some(),
            vram: None,
        };
        if let Some(vram) = vram {
            vram.take(size)?;
            buffer.vram = Some(Arc::clone(vram));
        }
        Ok(buffer)
    }

    /// Imports a buffer from an exported descriptor. `vram` is that of the importing GPU: the VRAM of another GPU is accessed
    /// like system memory. As in the kernel, a descriptor of anything but a buffer is an invalid argument.
    pub(crate) fn import(descriptor: RawFd, vram: Option<&Arc<Vram>>) -> Result<Self> {
        let file = own(duplicate(descriptor).ok_or(Errno::BADF)?)?;
        let name = memfd_name(&file)?
            .filter(|name| name == SYSTEM || name.starts_with(LOCAL))
            .ok_or(Errno::INVAL)?;
        let size = fstat(&file)?.st_size as u64;
        Ok(Self {
            bytes: map(&file, size)?,
            file,
            size,
            is_vram: vram.is_some_and(|vram| vram.name == name),
            vram: None,
        })
    }

    /// Exports the buffer as a new descriptor.
    pub(crate) fn export(&self, close_on_exec: bool) -> Result<RawFd> {
        let exported = fcntl_dupfd_cloexec(&self.file, 3)?;
        if !close_on_exec {
            fcntl_setfd(&exported, FdFlags::empty())?;
        }
        Ok(exported.into_raw_fd())
    }

    /// The device and the inode of the memfd, which identify the buffer across processes.
    pub(crate) fn identity(&self) -> Result<(u64, u64)> {
        let stat = fstat(&self.file)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The address of a byte. `offset` is within the buffer, which the bind has checked.
    pub(super) fn at(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.size);
        self.bytes.as_ptr().wrapping_add(offset as usize)
    }
}

/// A buffer is equal to itself only.
impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Buffer {}

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
fn own(file: impl AsFd) -> Result<OwnedFd> {
    fcntl_dupfd_cloexec(file, FIRST_DESCRIPTOR)
}

/// The name of a memfd; `None` for any other file, unless the root folder has a file with the name of a memfd's link.
fn memfd_name(file: &OwnedFd) -> Result<Option<String>> {
    let link = readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new())?;
    Ok(link
        .to_str()
        .ok()
        .and_then(|link| link.strip_prefix("/memfd:")?.strip_suffix(" (deleted)"))
        .map(str::to_owned))
}

fn map(file: impl AsFd, size: u64) -> Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: the kernel chooses the address, so no mapping is replaced.
    let bytes = unsafe { mmap(ptr::null_mut(), size as usize, access, flags, file, 0) }?;
    NonNull::new(bytes.cast()).ok_or(Errno::NOMEM)
}
