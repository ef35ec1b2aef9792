//! With `XE_SIM_KERNELS=skip`, user kernels are skipped and do not ban their exec queue. Each skipped kernel is appended to
//! a file, from which a test run identifies the tests that cannot pass.

use std::process;
use std::sync::OnceLock;

use crate::report::{append, not_simulated, say};
use crate::settings;

const VARIABLE: &str = "XE_SIM_KERNELS";
const FILE: &str = "/run/xe-sim/kernels";

pub(super) fn skips() -> bool {
    static SKIPS: OnceLock<bool> = OnceLock::new();
    *SKIPS.get_or_init(|| settings::get(VARIABLE).is_some())
}

/// Returns the reason why the variable is malformed.
pub(crate) fn check() -> Result<(), String> {
    match settings::get(VARIABLE).as_deref() {
        None | Some("skip") => Ok(()),
        Some(other) => Err(format!("{VARIABLE}={other}: its only value is skip")),
    }
}

pub(super) fn note(at: u64, name: &str) {
    say(format_args!("the kernel {name} at {at:#x} is skipped"));
    if let Err(error) = append(FILE, format_args!("{} {at:#x} {name}", process::id())) {
        not_simulated(format_args!("a note in {FILE}: {error}"));
    }
}
