//! The two Level Zero adapters of SYCL, of which a process uses one.

use std::env;
use std::ffi::OsString;

use once_cell::race::OnceBool;

use crate::device::Device;
use crate::runtime::Runtime;

/// The variables that select the second adapter if one of them says so, and the first if they are set and none does.
const VARIABLES: [&str; 2] = ["UR_LOADER_USE_LEVEL_ZERO_V2", "SYCL_UR_USE_LEVEL_ZERO_V2"];

/// The version of the architecture from which on SYCL uses the second adapter by itself, for all devices if one has it:
/// Battlemage, 20.1.
const SINCE: u32 = 20 << 22 | 1 << 14;

/// Whether SYCL 2025 and later use their second adapter in this process. The first answer stands, as SYCL decides once.
#[must_use]
pub fn has_second_adapter() -> bool {
    static ANSWER: OnceBool = OnceBool::new();
    ANSWER.get_or_init(|| {
        let has_newer = || {
            let devices = Runtime::get().map_or(&[][..], Runtime::devices);
            devices
                .iter()
                .map(Device::architecture)
                .any(|it| it >= SINCE)
        };
        selected(VARIABLES.map(env::var_os)).unwrap_or_else(has_newer)
    })
}

/// Whether the values of the variables select the second adapter; `None` without a value.
fn selected(values: [Option<OsString>; 2]) -> Option<bool> {
    let is_true = |value: OsString| {
        let value = value.to_str().map(str::to_ascii_lowercase);
        matches!(value.as_deref(), Some("y" | "yes" | "t" | "true" | "1"))
    };
    let values = values.into_iter().flatten().map(is_true);
    values.reduce(|one, other| one || other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_variable_is_enough() {
        let of = |one: Option<&str>, other: Option<&str>| {
            selected([one, other].map(|it| it.map(OsString::from)))
        };
        assert_eq!(of(None, None), None);
        assert_eq!(of(None, Some("1")), Some(true));
        assert_eq!(of(Some("0"), Some("True")), Some(true));
        assert_eq!(of(Some("yes"), Some("0")), Some(true));
        for value in ["0", "off", "false", "", "2", "on"] {
            assert_eq!(of(Some(value), None), Some(false), "{value}");
        }
    }
}
