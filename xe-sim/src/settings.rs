//! The variables `XE_SIM_*`. The launcher also stores them in a file, for programs that are started with a cleared
//! environment.

use std::env;
use std::fmt::Display;
use std::fs;
use std::str::FromStr;
use std::sync::OnceLock;

/// The launcher's file, with one `NAME=VALUE` per line.
pub(crate) const FILE: &str = "/run/xe-sim/environment";
/// The machine's name, see [`crate::machine`].
pub(crate) const MACHINE: &str = "XE_SIM_MACHINE";
/// With any value but 0, each request, batch, command and kernel is logged on standard error.
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

/// The parsed value of a variable, or the reason why it is malformed.
pub(crate) fn parse<T: FromStr<Err: Display>>(name: &str) -> Result<Option<T>, String> {
    let parsed = |text: String| text.parse().map_err(|why| format!("{name}={text}: {why}"));
    get(name).map(parsed).transpose()
}

pub(crate) fn logs() -> bool {
    static LOGS: OnceLock<bool> = OnceLock::new();
    *LOGS.get_or_init(|| get(LOG).is_some_and(|value| value != "0"))
}
