//! Level Zero's side: its handles, which begin with a file descriptor.

use std::ffi::{CStr, c_char};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr;

use level_zero_sys as sys;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::process::Resource;

use super::Error;
use super::identity::File;
use super::lent::Lent;
use crate::context::Context;
use crate::device::Device;
use crate::device::Driver;

/// Whether a driver passes memory between processes.
///
/// # Errors
/// [`crate::error::Error::Call`] with the driver's answer.
///
/// Source: Level Zero specification, `zeDriverGetIpcProperties`.
pub fn is_supported(driver: &Driver) -> crate::error::Result<bool> {
    let mut properties = sys::ze_driver_ipc_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES,
        ..Default::default()
    };
    // SAFETY: the driver lives as long as the process, and the structure names its type.
    unsafe {
        call!(
            driver.library(),
            zeDriverGetIpcProperties(driver.handle(), &mut properties)
        )
    }?;
    Ok(properties.flags & sys::ZE_IPC_PROPERTY_FLAG_MEMORY.0 != 0)
}

/// Level Zero's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw(pub [u8; 64]);

impl Raw {
    /// Of the allocation that begins at `base`.
    pub fn get(context: &Context, base: usize) -> crate::error::Result<Self> {
        let mut handle = sys::ze_ipc_mem_handle_t::default();
        let base = ptr::without_provenance(base);
        // SAFETY: the context is alive, the address is looked up and not followed.
        unsafe {
            call!(
                context.library(),
                zeMemGetIpcHandle(context.handle(), base, &mut handle)
            )
        }?;
        Ok(Self(handle.data.map(|byte| byte as u8)))
    }

    /// Gives it back, where the driver knows how (since specification 1.6).
    pub fn put(&self, context: &Context) {
        if let Some(put) = context.library().extensions().zeMemPutIpcHandle {
            // The driver keeps what it does not want to take back; it goes with the memory.
            // SAFETY: the context is alive and made the handle.
            let _ = unsafe { put(context.handle(), self.handle()) };
        }
    }

    /// Maps the memory; `moved` is the handle's descriptor in this process.
    ///
    /// The older of Intel's drivers take the number in the handle for a descriptor of this process, the newer ones for
    /// one of the process that made it. Both are right when the descriptor has the same number here as there; where that
    /// number is taken, the new one is written into the handle, which the older ones and the CPU runtime understand.
    ///
    /// # Safety
    /// A driver of the same kind, in a process that is trusted, must have given the handle, with `moved` as its
    /// descriptor: what else the bytes hold, drivers believe without a check.
    pub unsafe fn open(
        &self,
        context: &Context,
        device: &Device,
        moved: Option<OwnedFd>,
    ) -> Result<usize, Error> {
        let mut handle = *self;
        let moved = moved.map(|moved| Lent::new(moved, self.descriptor()));
        let moved = moved.transpose().map_err(|cause| {
            let what = "cannot duplicate the descriptor of the memory";
            Error::System { what, cause }
        })?;
        if let Some(moved) = &moved {
            handle.0[..4].copy_from_slice(&moved.number().to_ne_bytes());
        }
        let mut pointer = ptr::null_mut();
        // SAFETY: context and device are alive, and the caller vouches for the handle.
        unsafe {
            call!(
                context.library(),
                zeMemOpenIpcHandle(
                    context.handle(),
                    device.handle(),
                    handle.handle(),
                    0,
                    &mut pointer
                )
            )
        }?;
        Ok(pointer.expose_provenance())
    }

    /// The number that a handle begins with by custom.
    pub fn descriptor(&self) -> i32 {
        i32::from_ne_bytes(std::array::from_fn(|index| self.0[index]))
    }

    /// What that number names in this process, if it names anything.
    pub fn file(&self) -> Option<File> {
        let number = self.descriptor();
        if number < 0 {
            return None;
        }
        // SAFETY: the driver has just given the number for a descriptor that it keeps open; a number that names nothing
        // is an error, not undefined.
        File::of(unsafe { BorrowedFd::borrow_raw(number) })
    }

    fn handle(&self) -> sys::ze_ipc_mem_handle_t {
        sys::ze_ipc_mem_handle_t {
            data: self.0.map(|byte| byte as c_char),
        }
    }
}

/// Unmaps what [`Raw::open`] mapped.
pub fn close(context: &Context, pointer: usize) {
    // The answer can only be told to nobody.
    // SAFETY: the caller owns the mapping, and nothing runs on it any more.
    let _ = unsafe {
        call!(
            context.library(),
            zeMemCloseIpcHandle(context.handle(), ptr::with_exposed_provenance(pointer))
        )
    };
}

/// What a driver's refusal of an allocation of `size` bytes means: drivers answer a few codes to everything, so the kernel
/// is asked what may be the reason.
pub fn explain(device: &Device, size: usize, cause: crate::error::Error) -> Error {
    // Asked first, as the driver has words for its last failure only.
    let description = description(device.driver());
    if let Some(cause) = shortage(size) {
        let what =
            "the Level Zero driver cannot pass the memory, nor can the kernel (memfd_create)";
        return Error::System { what, cause };
    }
    match is_supported(device.driver()) {
        Ok(false) => Error::Unsupported {
            device: device.name().to_owned(),
            description,
        },
        _ => Error::Refused { cause, description },
    }
}

/// Why this process can have no memory file of `size` bytes now, if so.
fn shortage(size: usize) -> Option<io::Error> {
    // A driver may need several descriptors at once.
    let files = || rustix::fs::memfd_create("zeusm-ipc", MemfdFlags::CLOEXEC);
    let files: Result<Vec<_>, _> = (0..4).map(|_| files()).collect();
    let longest = rustix::process::getrlimit(Resource::Fsize).current;
    match files {
        Err(error) => Some(error.into()),
        Ok(_) if longest.is_some_and(|longest| longest < size as u64) => Some(Errno::FBIG.into()),
        Ok(_) => None,
    }
}

/// The driver's words for what failed last in this thread (since specification 1.6); empty where it has none.
fn description(driver: &Driver) -> String {
    let functions = driver.library().extensions();
    let Some(describe) = functions.zeDriverGetLastErrorDescription else {
        return String::new();
    };
    let mut text = ptr::null();
    // SAFETY: the driver lives as long as the process.
    let result = unsafe { describe(driver.handle(), &mut text) };
    if result != sys::ZE_RESULT_SUCCESS || text.is_null() {
        return String::new();
    }
    // SAFETY: the driver gave a string, which is valid until the thread's next failing call.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}
