//! The variables `XE_SIM_*`. The launcher also stores them in a file, for programs that are started with a cleared
//! environment.

use std::env;
use std::fs;
use std::str::FromStr;
use std::sync::OnceLock;

/// The launcher's file, with one `NAME=VALUE` per line.
pub(crate) const FILE: &str = "/run/xe-sim/environment";
/// The machine's name, see [`crate::machine`].
pub(crate) const MACHINE: &str = "XE_SIM_MACHINE";
/// With any value, each request, batch, command and kernel is logged on standard error.
const LOG: &str = "XE_SIM_LOG";

/// The value of a variable from the environment, otherwise from the launcher's file.
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

/// The value of a numeric variable. A malformed value aborts the process, because a run without the requested fault would
/// prove nothing.
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
