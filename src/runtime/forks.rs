//! Announcing forks to the CPU runtime.

use level_zero_sys as sys;

use super::Runtime;
use super::extension::Extension;
use crate::device::Driver;
use crate::error::Result;

/// A function of the CPU runtime's extension `ZEUSM_experimental_forks`.
type Function = unsafe extern "C" fn(sys::ze_driver_handle_t) -> sys::ze_result_t;

/// Announces forks to the CPU runtime; see [`Runtime::announced_forks`].
#[derive(Clone, Debug)]
pub struct AnnouncedForks {
    driver: Driver,
    announce: Function,
}

impl Runtime {
    /// Has the CPU runtime wait for kernels in flight in announced forks only, in this process and its children. A program that
    /// knows which of its children only start another program announces the other forks.
    ///
    /// ```
    /// use zeusm::Runtime;
    ///
    /// # if Runtime::select()?.kind() != zeusm::runtime::RuntimeKind::Cpu { return Ok(()); }
    /// let forks = Runtime::announced_forks()?;
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
        let (require, announce): (Function, Function) = unsafe {
            (
                extension.function(c"zeusmDriverRequireForkAnnouncements")?,
                extension.function(c"zeusmDriverAnnounceFork")?,
            )
        };
        let driver = extension.driver;
        // SAFETY: the driver is alive. It accepts its own handle.
        unsafe { require(driver.handle()) };
        Ok(AnnouncedForks { driver, announce })
    }
}

impl AnnouncedForks {
    /// Announces the next fork of the calling thread, whose child may run kernels.
    pub fn announce(&self) {
        // SAFETY: the driver is alive. It accepts its own handle.
        unsafe { (self.announce)(self.driver.handle()) };
    }
}
