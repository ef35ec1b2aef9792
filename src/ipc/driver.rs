//! What drivers share: Level Zero's IPC handles, which begin with a file descriptor, and what they are of.

use std::ffi::c_char;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use level_zero_sys as sys;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::process::Resource;
use zeusm_process::{FIRST_DESCRIPTOR, FileId};

use super::Error;
use super::driver_descriptor::DriverDescriptor;
use super::identity;
use crate::call::last_error;
use crate::context::Context;
use crate::device::Device;
use crate::device::Driver;
use crate::usm::UsmKind;

/// The most descriptors that are passed to the driver for one opening.
const ATTEMPTS: u32 = 8;

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Memory(UsmKind),
    Event,
}

impl Subject {
    const ALL: [Self; 4] = [
        Self::Memory(UsmKind::Host),
        Self::Memory(UsmKind::Device),
        Self::Memory(UsmKind::Shared),
        Self::Event,
    ];

    /// Its number in serialised handles.
    pub fn number(self) -> u8 {
        match self {
            Self::Memory(UsmKind::Host) => 1,
            Self::Memory(UsmKind::Device) => 2,
            Self::Memory(UsmKind::Shared) => 3,
            Self::Event => 4,
        }
    }

    /// The subject with that number.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.number() == number)
    }

    /// The flag of drivers that support it.
    pub fn flag(self) -> u32 {
        match self {
            Self::Memory(_) => sys::ZE_IPC_PROPERTY_FLAG_MEMORY.0,
            Self::Event => sys::ZE_IPC_PROPERTY_FLAG_EVENT_POOL.0,
        }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Event => "events",
        }
    }
}

/// Whether a driver supports IPC of the subject, and the system allows it: of the CPU runtime, the system may forbid a call that
/// it needs, and every handle has the machine's identity. A shortage does not count, as it may pass.
///
/// # Errors
/// [`crate::error::Error::Call`] with the driver's result.
///
/// Source: Level Zero specification, `zeDriverGetIpcProperties`.
pub fn is_supported(driver: &Driver, subject: Subject) -> crate::error::Result<bool> {
    let mut properties = sys::structure::<sys::ze_driver_ipc_properties_t>();
    // SAFETY: the driver lives as long as the process, and the structure names its type.
    unsafe {
        call!(
            driver.library(),
            zeDriverGetIpcProperties(driver.handle(), &mut properties)
        )
    }?;
    let is_supported = properties.flags & subject.flag() != 0;
    Ok(is_supported && identity::boot_id().is_ok())
}

/// Level Zero's IPC handle (`ze_ipc_mem_handle_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverHandle(pub [u8; 64]);

impl DriverHandle {
    /// Of the allocation that begins at `base`.
    pub fn get(context: &Context, base: usize) -> crate::error::Result<Self> {
        let mut handle = sys::ze_ipc_mem_handle_t::default();
        let base = ptr::without_provenance(base);
        // SAFETY: the context is alive, and the address is looked up and not dereferenced.
        unsafe {
            call!(
                context.library(),
                zeMemGetIpcHandle(context.handle(), base, &mut handle)
            )
        }?;
        Ok(Self(handle.data.map(|byte| byte as u8)))
    }

    /// Calls `open` with the handle of a subject for this process, in which `received` is its descriptor, and which made it if
    /// `is_own`. An error of the driver is explained.
    ///
    /// Older drivers of Intel interpret the number in the handle as a descriptor of this process, newer ones as one of the
    /// exporting process unless it was changed, which may name another file by now. So it is changed, to a higher one. In the
    /// exporting process, Intel's driver refuses the numbers of descriptors that it has exported and closed, so that other
    /// ones are tried.
    pub fn open<T>(
        &self,
        received: Option<OwnedFd>,
        is_own: bool,
        (device, subject): (&Device, Subject),
        open: impl Fn(&Self) -> crate::error::Result<T>,
    ) -> Result<T, Error> {
        let explain = |cause| explain(device, subject, 0, cause);
        let Some(received) = received else {
            return open(self).map_err(explain);
        };
        let system = |cause| Error::System {
            what: "cannot duplicate the descriptor of the handle",
            cause,
        };
        let number = self.descriptor().saturating_add(1);
        let mut passed = DriverDescriptor::new(received, number).map_err(system)?;
        let mut attempts = if is_own { ATTEMPTS } else { 1 };
        let refused = Some(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
        loop {
            let opened = open(&self.with_descriptor(passed.number()));
            attempts -= 1;
            match opened {
                Err(error) if attempts > 0 && error.result() == refused => {
                    // Further each time: the numbers of one process lie together.
                    let distance = 1 << (ATTEMPTS - attempts);
                    let number = passed.number().saturating_add(distance);
                    let Ok(other) = passed.renumbered(number) else {
                        return Err(explain(error));
                    };
                    passed = other;
                }
                opened => return opened.map_err(explain),
            }
        }
    }

    /// Maps the memory by the handle as it is, with which [`open`](Self::open) has called.
    ///
    /// # Safety
    /// A driver of the same kind, in a trusted process, must have made the handle, with this descriptor: drivers do not check the
    /// other bytes.
    pub unsafe fn map(&self, context: &Context, device: &Device) -> crate::error::Result<usize> {
        let mut pointer = ptr::null_mut();
        // SAFETY: context and device are alive, and the caller guarantees the validity of the handle.
        unsafe {
            call!(
                context.library(),
                zeMemOpenIpcHandle(
                    context.handle(),
                    device.handle(),
                    self.handle(),
                    0,
                    &mut pointer
                )
            )
        }?;
        Ok(pointer.expose_provenance())
    }

    /// The descriptor's number, with which a handle begins by convention.
    pub fn descriptor(&self) -> i32 {
        i32::from_ne_bytes(std::array::from_fn(|index| self.0[index]))
    }

    /// The bytes after the descriptor's number, which is not the same for all handles of an allocation.
    pub fn without_descriptor(&self) -> [u8; 60] {
        std::array::from_fn(|index| self.0[4 + index])
    }

    /// The descriptor's file in this process, if the number is that of a descriptor.
    pub fn file(&self) -> Option<FileId> {
        FileId::of(self.borrowed()?)
    }

    /// Closes the descriptor, which the driver has forgotten, if it is still that of `file`.
    pub fn close(&self, file: FileId) {
        if self.file() == Some(file) {
            // SAFETY: the descriptor is the driver's, which uses it no more.
            drop(unsafe { OwnedFd::from_raw_fd(self.descriptor()) });
        }
    }

    /// A duplicate of that descriptor in this process, if it is one.
    ///
    /// # Errors
    /// That of the system for any other reason than that it is no descriptor.
    pub fn duplicate(&self) -> io::Result<Option<OwnedFd>> {
        let Some(theirs) = self.borrowed() else {
            return Ok(None);
        };
        match rustix::io::fcntl_dupfd_cloexec(theirs, FIRST_DESCRIPTOR) {
            Ok(own) => Ok(Some(own)),
            Err(Errno::BADF) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn borrowed(&self) -> Option<BorrowedFd<'_>> {
        let number = self.descriptor();
        // SAFETY: the system is asked about the number or duplicates it. One without an open file is an error, and not
        // undefined behaviour.
        (number >= 0).then(|| unsafe { BorrowedFd::borrow_raw(number) })
    }

    /// The handle with another descriptor.
    pub fn with_descriptor(mut self, number: RawFd) -> Self {
        self.0[..4].copy_from_slice(&number.to_ne_bytes());
        self
    }

    fn handle(&self) -> sys::ze_ipc_mem_handle_t {
        sys::ze_ipc_mem_handle_t {
            data: self.0.map(|byte| byte as c_char),
        }
    }
}

/// Unmaps memory that [`DriverHandle::open`] mapped.
///
/// # Safety
/// It must have been mapped at `pointer` in this context, and neither be closed nor used by anyone, now or later.
pub unsafe fn close(context: &Context, pointer: usize) {
    // A failure is ignored, as a drop cannot report it.
    // SAFETY: the caller vouches for the mapping.
    let _ = unsafe {
        call!(
            context.library(),
            zeMemCloseIpcHandle(context.handle(), ptr::with_exposed_provenance(pointer))
        )
    };
}

/// The error for a driver's refusal of an allocation of `size` bytes. Drivers use few result codes, so this checks for a
/// shortage of the kernel's resources.
pub fn explain(
    device: &Device,
    subject: Subject,
    size: usize,
    cause: crate::error::Error,
) -> Error {
    // This comes first, as the driver describes its last failure only.
    let description = last_error(device.driver().library(), device.driver().handle());
    if let Some(cause) = shortage(size) {
        let what = "the Level Zero driver cannot share memory or events, as the kernel refuses a file for it (memfd_create)";
        return Error::System { what, cause };
    }
    match is_supported(device.driver(), subject) {
        Ok(false) => Error::Unsupported {
            what: subject.name(),
            device: device.to_string(),
            description,
        },
        _ => Error::Refused { cause, description },
    }
}

/// The reason why this process cannot make a memory file of `size` bytes now; `None` if it can.
fn shortage(size: usize) -> Option<io::Error> {
    // A driver may need several descriptors.
    let files = || rustix::fs::memfd_create("zeusm-ipc", MemfdFlags::CLOEXEC);
    let files: Result<Vec<_>, _> = (0..4).map(|_| files()).collect();
    let limit = rustix::process::getrlimit(Resource::Fsize).current;
    match files {
        Err(error) => Some(error.into()),
        Ok(_) if limit.is_some_and(|limit| limit < size as u64) => Some(Errno::FBIG.into()),
        Ok(_) => None,
    }
}
