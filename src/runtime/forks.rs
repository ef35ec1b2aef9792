//! Announcing forks to the CPU runtime.

use level_zero_sys as sys;

use super::extension::Extension;
use super::serving::Runtime;
use crate::device::Driver;
use crate::error::Result;

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
