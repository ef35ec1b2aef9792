//! With `XE_SIM_KERNELS=skip`, user kernels are skipped and do not ban their exec queue. Each skipped kernel is appended to
//! a file, from which a test run identifies the tests that cannot pass.

use std::process;
use std::str::FromStr;
use std::sync::OnceLock;

use crate::report::{append, not_simulated, say, value};
use crate::settings;

const VARIABLE: &str = "XE_SIM_KERNELS";
const FILE: &str = "/run/xe-sim/kernels";

pub(super) fn skips() -> bool {
    static SKIPS: OnceLock<bool> = OnceLock::new();
    *SKIPS.get_or_init(|| value::<Skip>(VARIABLE).is_some())
}

/// Returns the reason why the variable is malformed.
pub(crate) fn check() -> Result<(), String> {
    settings::parse::<Skip>(VARIABLE).map(drop)
}

/// The one value of the variable.
struct Skip;

impl FromStr for Skip {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "skip" => Ok(Self),
            _ => Err("its only value is skip"),
        }
    }
}

pub(super) fn note(at: u64, name: &str) {
    say(format_args!("the kernel {name} at {at:#x} is skipped"));
    if let Err(error) = append(FILE, format_args!("{} {at:#x} {name}", process::id())) {
        not_simulated(format_args!("a note in {FILE}: {error}"));
    }
}
