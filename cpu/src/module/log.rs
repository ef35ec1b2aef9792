//! Build logs.

use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::entry::Bytes;
use crate::abi::result::ZeResult;
use crate::handle::{hand_out, object};

object!(BuildLog, sys::_ze_module_build_log_handle_t, ModuleBuildLog);

/// The text of a build log.
pub struct BuildLog(String);

impl BuildLog {
    /// Creates a log with this text for the caller, if it requested one.
    pub fn hand_out(
        text: String,
        place: Option<&mut sys::ze_module_build_log_handle_t>,
    ) -> ZeResult {
        place.map_or(Ok(()), |place| hand_out(Self(text), place))
    }
}

/// `zeModuleBuildLogGetString`.
pub fn text(log: Arc<BuildLog>, place: Bytes<'_>) -> ZeResult {
    place.write_text(&log.0)
}
