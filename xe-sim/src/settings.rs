//! The variables `XE_SIM_*`. The launcher leaves its own ones in a file, for programs that are started with an emptied
//! environment.

use std::env;
use std::fs;
use std::str::FromStr;
use std::sync::OnceLock;

/// Where the launcher leaves them, one `NAME=VALUE` a line.
pub(crate) const FILE: &str = "/run/xe-sim/environment";
/// The machine's name, see [`crate::machine`].
pub(crate) const MACHINE: &str = "XE_SIM_MACHINE";
/// Anything: each request, batch and kernel is told on standard error.
const LOG: &str = "XE_SIM_LOG";

/// The value of a variable, or of the line with its name in the launcher's file.
pub(crate) fn get(name: &str) -> Option<String> {
    env::var(name).ok().or_else(|| {
        static LINES: OnceLock<String> = OnceLock::new();
        LINES
            .get_or_init(|| fs::read_to_string(FILE).unwrap_or_default())
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map(str::to_owned)
    })
}

/// A variable with a number in it; anything else in it ends the process, since a fault that is not made proves nothing.
pub(crate) fn number<T: FromStr>(name: &str) -> Option<T> {
    let text = get(name)?;
    let Ok(number) = text.parse() else {
        crate::report::not_simulated(format_args!("{name}={text}"));
    };
    Some(number)
}

pub(crate) fn logs() -> bool {
    static LOGS: OnceLock<bool> = OnceLock::new();
    *LOGS.get_or_init(|| get(LOG).is_some())
}
