//! The checker's environment variables, read once.

use std::env;
use std::path::PathBuf;

use zeusm_process::Lazy;

use super::say;
use crate::system::environment;

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
#[derive(Debug)]
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
    SETTINGS.get_or_make(|| {
        let text = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let mut settings = parse(text(CHECK).as_deref().unwrap_or("0"));
        let path = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        settings.report = path(REPORT).map(PathBuf::from);
        settings.suppressions = path(SUPPRESSIONS).map(PathBuf::from);
        if let Some(code) = text(EXIT_CODE) {
            match code.parse::<u8>() {
                Ok(code) => settings.exit_code = i32::from(code),
                Err(_) => say::line(format_args!("{EXIT_CODE}={code} is no exit status")),
            }
        }
        settings
    })
}

/// Disables SYCL's pools, whose blocks are parts of one allocation.
pub fn disable_pools() {
    environment::set_default(c"UR_L0_DISABLE_USM_ALLOCATOR", c"1");
    environment::set_default(c"SYCL_PI_LEVEL_ZERO_DISABLE_USM_ALLOCATOR", c"1");
}

/// The checks that the value of [`CHECK`] names.
fn parse(value: &str) -> Settings {
    let mut settings = Settings {
        on: false,
        leaks: false,
        uninitialised: false,
        frames: false,
        report: None,
        suppressions: None,
        exit_code: DEFAULT_EXIT_CODE,
    };
    for name in value.split(',').map(str::trim) {
        match name {
            "" | "0" => continue,
            "1" => {}
            "leaks" => settings.leaks = true,
            "uninitialised" => settings.uninitialised = true,
            "frames" => settings.frames = true,
            "all" => (settings.leaks, settings.uninitialised) = (true, true),
            _ => say::line(format_args!(
                "{CHECK} takes 1, leaks, uninitialised, frames or all, and not {name}"
            )),
        }
        settings.on = true;
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_checks() {
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
    }
}
