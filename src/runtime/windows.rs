//! The selection on Windows: the system's loader. There is no CPU runtime, which uses Linux's memory files and signals.

use level_zero_sys as sys;

use super::serving::{Runtime, RuntimeKind};
use crate::error::{Error, Result};

/// The system's loader, with the devices that it finds.
pub(super) fn automatic() -> Result<Runtime> {
    Runtime::start(sys::load()?, RuntimeKind::System, "Windows has no other")
}

/// # Errors
/// [`Error::LinuxOnly`], always.
pub(super) fn load_cpu_runtime() -> Result<&'static sys::Library> {
    Err(Error::LinuxOnly("the CPU runtime"))
}
