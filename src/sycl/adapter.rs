//! The two Level Zero adapters of SYCL.

use std::env;
use std::ffi::OsStr;

use crate::device::Device;

/// The variables that select the second adapter, or with `0` the first, in the order in which SYCL reads them.
const VARIABLES: [&str; 2] = ["UR_LOADER_USE_LEVEL_ZERO_V2", "SYCL_UR_USE_LEVEL_ZERO_V2"];

/// The version of the architecture from which on SYCL uses the second adapter by itself: Battlemage, 20.1.
const SINCE: u32 = 20 << 22 | 1 << 14;

/// Whether SYCL 2025 and later use their second adapter for a device.
#[must_use]
pub fn has_second_adapter(device: &Device) -> bool {
    let requested = VARIABLES.into_iter().find_map(env::var_os);
    match requested.as_deref().and_then(OsStr::to_str) {
        Some(value) => !matches!(value, "0" | "no" | "off" | "false"),
        None => device.architecture() >= SINCE,
    }
}
