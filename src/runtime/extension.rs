//! The CPU runtime's own extensions: several devices, and the announcement of forks.

use std::ffi::{CStr, c_void};
use std::{mem, ptr};

use level_zero_sys as sys;

use super::serving::Runtime;
use crate::call::last_error;
use crate::device::Driver;
use crate::error::{Error, Result};

/// The CPU runtime's driver, by which its extensions are found.
#[derive(Clone, Debug)]
struct Extension {
    runtime: &'static Runtime,
    driver: Driver,
}

impl Extension {
    /// The selected runtime's.
    ///
    /// # Errors
    /// [`Error::NotCpuRuntime`] when another runtime was selected, and the errors of [`Runtime::select`].
    fn get() -> Result<Self> {
        let runtime = Runtime::select()?;
        match Driver::all(runtime.library())?.into_iter().next() {
            Some(driver) => Ok(Self { runtime, driver }),
            None => Err(runtime.is_not_cpu()),
        }
    }

    /// The function of this name.
    ///
    /// # Errors
    /// [`Error::NotCpuRuntime`] when there is none.
    ///
    /// # Safety
    /// `F` must be the function's pointer type (`unsafe extern "C" fn ...`).
    unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let mut address: *mut c_void = ptr::null_mut();
        // SAFETY: the driver is alive, the name ends in a null, and the address outlives the call.
        unsafe {
            call!(
                self.runtime.library(),
                zeDriverGetExtensionFunctionAddress(
                    self.driver.handle(),
                    name.as_ptr(),
                    &mut address
                )
            )
        }
        .map_err(|_| self.runtime.is_not_cpu())?;
        if address.is_null() {
            return Err(self.runtime.is_not_cpu());
        }
        // SAFETY: the caller guarantees the type of the function, whose address is not null.
        Ok(unsafe { mem::transmute_copy(&address) })
    }
}

impl Runtime {
    fn is_not_cpu(&self) -> Error {
        Error::NotCpuRuntime(self.path())
    }
}

/// The GPUs that the CPU runtime presents, in addition to its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuDevices {
    /// The number of GPUs, 1 by default. They share the machine's processors and memory equally.
    pub gpus: u32,
    /// The number of tiles, or sub-devices, of each GPU, 1 by default for none.
    pub tiles: u32,
    /// Whether each device accesses the memory of the others, by default `true`.
    pub peer_access: bool,
}

impl Default for CpuDevices {
    fn default() -> Self {
        Self {
            gpus: 1,
            tiles: 1,
            peer_access: true,
        }
    }
}

/// The function of the CPU runtime's extension `ZEUSM_experimental_devices`.
type PresentDevices =
    unsafe extern "C" fn(sys::ze_driver_handle_t, u32, u32, sys::ze_bool_t) -> sys::ze_result_t;

impl Runtime {
    /// Chooses the devices of the CPU runtime; overrides the environment variables `ZEUSM_CPU_DEVICES`, `ZEUSM_CPU_TILES` and
    /// `ZEUSM_CPU_PEER_ACCESS`. It must be called before the devices are listed, by [`Runtime::get`] or a SYCL runtime.
    ///
    /// ```
    /// use zeusm::Runtime;
    /// use zeusm::runtime::CpuDevices;
    ///
    /// # if Runtime::select()?.kind() != zeusm::runtime::RuntimeKind::Cpu { return Ok(()); }
    /// Runtime::set_cpu_devices(CpuDevices { gpus: 2, ..CpuDevices::default() })?;
    /// let gpus = Runtime::get()?.devices().iter().filter(|device| device.is_gpu());
    /// assert_eq!(gpus.count(), 2);
    /// # Ok::<(), zeusm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DevicesListed`] when other devices were listed already, [`Error::NotCpuRuntime`] when another runtime was
    /// selected, [`Error::InvalidCpuDevices`] for numbers that are 0 or too large, and the errors of
    /// [`select`](Self::select).
    pub fn set_cpu_devices(devices: CpuDevices) -> Result<()> {
        let extension = Extension::get()?;
        // SAFETY: the extension gives the function of this name this type.
        let present: PresentDevices = unsafe { extension.function(c"zeusmDriverPresentDevices") }?;
        let Extension { runtime, driver } = extension;
        let CpuDevices {
            gpus,
            tiles,
            peer_access,
        } = devices;
        // SAFETY: the driver is alive.
        match unsafe { present(driver.handle(), gpus, tiles, peer_access.into()) } {
            sys::ZE_RESULT_SUCCESS => Ok(()),
            sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE => Err(Error::DevicesListed),
            sys::ZE_RESULT_ERROR_INVALID_ARGUMENT => Err(Error::InvalidCpuDevices(last_error(
                runtime.library(),
                driver.handle(),
            ))),
            result => Err(Error::Call {
                function: "zeusmDriverPresentDevices",
                result,
            }),
        }
    }
}

/// A function of the CPU runtime's extension `ZEUSM_experimental_forks`.
type Function = unsafe extern "C" fn(sys::ze_driver_handle_t) -> sys::ze_result_t;

/// Announces forks to the CPU runtime; see [`Runtime::announced_forks`].
#[derive(Clone, Debug)]
pub struct AnnouncedForks {
    driver: Driver,
    require: Function,
    announce: Function,
}

impl Runtime {
    /// Announcements of forks to the CPU runtime. By default each fork waits for kernels in flight, so that its child can run
    /// kernels. A program that knows which of its children only start another program [requires](AnnouncedForks::require)
    /// announcements, and announces the forks of its other children.
    ///
    /// ```
    /// use zeusm::Runtime;
    ///
    /// # if Runtime::select()?.kind() != zeusm::runtime::RuntimeKind::Cpu { return Ok(()); }
    /// let forks = Runtime::announced_forks()?;
    /// forks.require();
    /// forks.announce(); // The child of this thread's next fork may run kernels.
    /// # Ok::<(), zeusm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotCpuRuntime`](crate::Error::NotCpuRuntime) when another runtime was selected, and the errors of
    /// [`select`](Self::select).
    pub fn announced_forks() -> Result<AnnouncedForks> {
        let extension = Extension::get()?;
        // SAFETY: the extension gives both functions this type.
        let (require, announce) = unsafe {
            (
                extension.function(c"zeusmDriverRequireForkAnnouncements")?,
                extension.function(c"zeusmDriverAnnounceFork")?,
            )
        };
        Ok(AnnouncedForks {
            driver: extension.driver,
            require,
            announce,
        })
    }
}

impl AnnouncedForks {
    /// From now on, a fork of this process or its children waits for kernels in flight only if it is announced.
    pub fn require(&self) {
        // SAFETY: the driver is alive. It accepts its own handle.
        unsafe { (self.require)(self.driver.handle()) };
    }

    /// Announces the next fork of the calling thread, whose child may run kernels.
    pub fn announce(&self) {
        // SAFETY: as above.
        unsafe { (self.announce)(self.driver.handle()) };
    }
}
