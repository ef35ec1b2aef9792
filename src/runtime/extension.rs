//! The CPU runtime's own extensions: several devices, and the announcement of forks.

use std::ffi::{CStr, c_void};
use std::{mem, ptr};

use level_zero_sys as sys;

use super::serving::Runtime;
use crate::call::last_error;
use crate::device::Driver;
use crate::error::{Error, Result};

/// A function of the selected runtime's extensions, with the driver that it takes.
///
/// # Errors
/// [`Error::NotCpuRuntime`] when another runtime was selected, and the errors of [`Runtime::select`].
///
/// # Safety
/// `F` must be the function's pointer type (`unsafe extern "C" fn ...`).
unsafe fn function<F: Copy>(name: &CStr) -> Result<(F, Driver)> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let runtime = Runtime::select()?;
    let is_not_cpu = || Error::NotCpuRuntime(runtime.path());
    let drivers = Driver::all(runtime.library())?;
    let driver = drivers.into_iter().next().ok_or_else(is_not_cpu)?;
    let (handle, mut address) = (driver.handle(), ptr::null_mut());
    // SAFETY: the driver is alive, the name ends in a null, and the address outlives the call.
    let found = unsafe {
        call!(
            runtime.library(),
            zeDriverGetExtensionFunctionAddress(handle, name.as_ptr(), &mut address)
        )
    };
    if found.is_err() || address.is_null() {
        return Err(is_not_cpu());
    }
    // SAFETY: the caller guarantees the type of the function, whose address is not null.
    Ok((unsafe { mem::transmute_copy(&address) }, driver))
}

/// The devices that the CPU runtime presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuDevices {
    /// The number of GPUs, 1 by default. They share the machine's processors and memory equally.
    pub gpus: u32,
    /// Whether a device of type CPU is listed after them, by default `false`: the same machine, for libraries such as oneMKL that
    /// have code for processors.
    pub cpu: bool,
    /// The number of tiles, or sub-devices, of each GPU, 1 by default for none.
    pub tiles: u32,
    /// Whether each device accesses the memory of the others, by default `true`.
    pub peer_access: bool,
}

impl Default for CpuDevices {
    fn default() -> Self {
        Self {
            gpus: 1,
            cpu: false,
            tiles: 1,
            peer_access: true,
        }
    }
}

/// The function of the CPU runtime's extension `ZEUSM_experimental_devices`.
type PresentDevices = unsafe extern "C" fn(
    sys::ze_driver_handle_t,
    u32,
    sys::ze_bool_t,
    u32,
    sys::ze_bool_t,
) -> sys::ze_result_t;

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
        // SAFETY: the extension gives the function of this name this type.
        let (present, driver) =
            unsafe { function::<PresentDevices>(c"zeusmDriverPresentDevices") }?;
        let CpuDevices {
            gpus,
            cpu,
            tiles,
            peer_access,
        } = devices;
        // SAFETY: the driver is alive.
        match unsafe { present(driver.handle(), gpus, cpu.into(), tiles, peer_access.into()) } {
            sys::ZE_RESULT_SUCCESS => Ok(()),
            sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE => Err(Error::DevicesListed),
            sys::ZE_RESULT_ERROR_INVALID_ARGUMENT => Err(Error::InvalidCpuDevices(last_error(
                driver.library(),
                driver.handle(),
            ))),
            result => Err(Error::Call {
                function: "zeusmDriverPresentDevices",
                result,
            }),
        }
    }

    /// From now on, a fork of this process or its children waits for kernels of the CPU runtime in flight only if it is
    /// [announced](Self::announce_fork); by default each one does, so that its child can run kernels.
    ///
    /// ```
    /// use zeusm::Runtime;
    ///
    /// # if Runtime::select()?.kind() != zeusm::runtime::RuntimeKind::Cpu { return Ok(()); }
    /// Runtime::require_announced_forks()?;
    /// Runtime::announce_fork()?; // The child of this thread's next fork may run kernels.
    /// # Ok::<(), zeusm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotCpuRuntime`](crate::Error::NotCpuRuntime) when another runtime was selected, and the errors of
    /// [`select`](Self::select).
    pub fn require_announced_forks() -> Result<()> {
        call_about_forks(c"zeusmDriverRequireForkAnnouncements")
    }

    /// Announces the next fork of the calling thread, whose child may run kernels.
    ///
    /// # Errors
    /// As for [`require_announced_forks`](Self::require_announced_forks).
    pub fn announce_fork() -> Result<()> {
        call_about_forks(c"zeusmDriverAnnounceFork")
    }
}

/// Calls a function of the CPU runtime's extension `ZEUSM_experimental_forks`.
fn call_about_forks(name: &CStr) -> Result<()> {
    type Function = unsafe extern "C" fn(sys::ze_driver_handle_t) -> sys::ze_result_t;
    // SAFETY: the extension gives its functions this type, and the driver is alive; it accepts its own handle.
    unsafe {
        let (call, driver) = function::<Function>(name)?;
        call(driver.handle());
    }
    Ok(())
}
