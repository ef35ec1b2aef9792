//! zeusm's environment variables: the names that exist, and one reader for their values.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;

/// The names that exist. Those of tests and benchmarks, which CONTRIBUTING.md lists, begin as [`FOR_TESTS`] do.
const NAMES: [&str; 18] = [
    "ZEUSM_CACHE_DIR",
    "ZEUSM_CACHE_SIZE",
    "ZEUSM_CHECK",
    "ZEUSM_CHECK_EXIT_CODE",
    "ZEUSM_CHECK_REPORT",
    "ZEUSM_CHECK_SUPPRESSIONS",
    "ZEUSM_COMPILER_SECONDS",
    "ZEUSM_CPU_DEVICES",
    "ZEUSM_CPU_DISCRETE",
    "ZEUSM_CPU_ENGINES",
    "ZEUSM_CPU_LIBRARY",
    "ZEUSM_CPU_PEER_ACCESS",
    "ZEUSM_CPU_STRICT",
    "ZEUSM_CPU_TILES",
    "ZEUSM_ENABLE",
    "ZEUSM_OPENCL_LIBRARY",
    "ZEUSM_POOL",
    "ZEUSM_RUNTIME",
];
const FOR_TESTS: [&str; 7] = [
    "ZEUSM_BENCH_",
    "ZEUSM_FUZZ",
    "ZEUSM_GALLERY",
    "ZEUSM_MIMALLOC_",
    "ZEUSM_SIMULATION",
    "ZEUSM_TEST_",
    "ZEUSM_UMF_",
];

/// A variable with a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidVariable {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The values that can be used, in words.
    pub expected: String,
}

impl fmt::Display for InvalidVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            value,
            expected,
        } = self;
        write!(formatter, "{name}={value:?} is not {expected}")
    }
}

impl std::error::Error for InvalidVariable {}

/// The value of a variable, converted by `parse`; `None` if it is not set, or empty. `read` returns values by name.
///
/// # Errors
/// For a value that `parse` refuses.
pub fn parse<T>(
    read: impl Fn(&'static str) -> Option<OsString>,
    name: &'static str,
    expected: impl FnOnce() -> String,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, InvalidVariable> {
    let value = read(name).unwrap_or_default();
    let value = value.to_string_lossy();
    if value.trim().is_empty() {
        return Ok(None);
    }
    let parsed = parse(value.trim()).ok_or_else(|| InvalidVariable {
        name,
        value: value.clone().into_owned(),
        expected: expected(),
    });
    parsed.map(Some)
}

/// A switch: `1`, `true`, `yes`, `on`, or `0`, `false`, `no`, `off`, in upper or lower case.
///
/// # Errors
/// For any other word.
pub fn switch(
    read: impl Fn(&'static str) -> Option<OsString>,
    name: &'static str,
) -> Result<Option<bool>, InvalidVariable> {
    let expected = || "1, true, yes, on, 0, false, no or off".to_owned();
    parse(read, name, expected, |word| {
        match word.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Some(true),
            "0" | "false" | "no" | "off" => Some(false),
            _ => None,
        }
    })
}

/// A whole number in a range.
///
/// # Errors
/// For any other text.
pub fn number(
    read: impl Fn(&'static str) -> Option<OsString>,
    name: &'static str,
    range: RangeInclusive<u32>,
) -> Result<Option<u32>, InvalidVariable> {
    let expected = || format!("a number from {} to {}", range.start(), range.end());
    parse(read, name, expected, |text| {
        text.parse().ok().filter(|number| range.contains(number))
    })
}

/// The variables of this process that begin as zeusm's do and do not exist, in alphabetical order: misspelt ones.
#[must_use]
pub fn unknown() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<_> = names.filter(|name| is_unknown(name)).collect();
    unknown.sort();
    unknown
}

fn is_unknown(name: &str) -> bool {
    let is_for_tests = FOR_TESTS.iter().any(|prefix| name.starts_with(prefix));
    name.starts_with("ZEUSM_") && !is_for_tests && !NAMES.contains(&name)
}

#[cfg(test)]
mod tests;
