//! The checker's environment variables, read once.

use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use zeusm_process::Lazy;
use zeusm_process::variables::{InvalidVariable, number, parse};

use crate::system::environment;

/// Whether the checker is on, which begins later than the settings are read.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether the checker is on.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// From now on, the checker is on.
pub fn turn_on() {
    ON.store(true, Ordering::Release);
}

/// Turns the checker on: `1`, or a list of names of further checks.
const CHECK: &str = "ZEUSM_CHECK";
/// Where the report is written as JSON; `%p` is the process id.
const REPORT: &str = "ZEUSM_CHECK_REPORT";
/// A file of suppressions.
const SUPPRESSIONS: &str = "ZEUSM_CHECK_SUPPRESSIONS";
/// The exit status of a process with findings.
const EXIT_CODE: &str = "ZEUSM_CHECK_EXIT_CODE";
/// The exit status without that variable.
const DEFAULT_EXIT_CODE: i32 = 86;

/// What the environment asks for.
#[derive(Debug, Default)]
pub struct Settings {
    /// Whether the checker is on.
    pub on: bool,
    /// Whether objects and memory that are alive at the exit are reported.
    pub leaks: bool,
    /// Whether copies of bytes that were never written are reported.
    pub uninitialised: bool,
    /// Whether all frames of a stack are printed.
    pub frames: bool,
    /// Where the report is written as JSON.
    pub report: Option<PathBuf>,
    /// The file of suppressions.
    pub suppressions: Option<PathBuf>,
    /// The exit status of a process with findings; 0 leaves the program's own.
    pub exit_code: i32,
}

/// The settings of this process.
pub fn get() -> &'static Settings {
    static SETTINGS: Lazy<Settings> = Lazy::new();
    SETTINGS.get_or_make(|| read().unwrap_or_default())
}

/// The values of the variables.
///
/// # Errors
/// For one that cannot be used.
pub fn read() -> Result<Settings, InvalidVariable> {
    let expected = || "0, 1, leaks, uninitialised, frames or all, or a list of these".to_owned();
    let chosen = parse(env::var_os, CHECK, expected, checks)?.unwrap_or_default();
    let code = number(env::var_os, EXIT_CODE, 0..=u8::MAX.into())?;
    let path = |name| env::var_os(name).filter(|value| !value.is_empty());
    Ok(Settings {
        report: path(REPORT).map(PathBuf::from),
        suppressions: path(SUPPRESSIONS).map(PathBuf::from),
        exit_code: code.map_or(DEFAULT_EXIT_CODE, |code| code as i32),
        ..chosen
    })
}

/// Disables SYCL's pools, whose blocks are parts of one allocation.
pub fn disable_pools() {
    environment::set_default(c"UR_L0_DISABLE_USM_ALLOCATOR", c"1");
    environment::set_default(c"SYCL_PI_LEVEL_ZERO_DISABLE_USM_ALLOCATOR", c"1");
}

/// The checks that the value of [`CHECK`] names; `None` if there is no such check.
fn checks(value: &str) -> Option<Settings> {
    let mut settings = Settings::default();
    for name in value.split(',').map(str::trim) {
        match name {
            "" | "0" => continue,
            "1" => {}
            "leaks" => settings.leaks = true,
            "uninitialised" => settings.uninitialised = true,
            "frames" => settings.frames = true,
            "all" => (settings.leaks, settings.uninitialised) = (true, true),
            _ => return None,
        }
        settings.on = true;
    }
    Some(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_checks() {
        let parse = |value: &str| checks(value).expect("names of checks");
        for off in ["", "0"] {
            assert!(!parse(off).on);
        }
        let only = parse("1");
        assert!(only.on && !only.leaks && !only.uninitialised);
        let leaks = parse("leaks");
        assert!(leaks.on && leaks.leaks && !leaks.uninitialised);
        let both = parse("leaks, uninitialised");
        assert!(both.on && both.leaks && both.uninitialised);
        assert!(parse("all").leaks && parse("all").uninitialised);
        assert!(checks("leak").is_none() && checks("1, leak").is_none());
    }
}
