//! Several devices of the CPU runtime.

use level_zero_sys as sys;

use super::extension::Extension;
use super::serving::Runtime;
use crate::call::last_error;
use crate::error::{Error, Result};

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
            sys::ZE_RESULT_ERROR_INVALID_ARGUMENT => Err(Error::InvalidCpuDevices {
                reason: last_error(runtime.library(), driver.handle()),
            }),
            result => Err(Error::Call {
                function: "zeusmDriverPresentDevices",
                result,
            }),
        }
    }
}
