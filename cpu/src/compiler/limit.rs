//! How long the build of a module may take.

use std::env;

use zeusm_process::variables::{InvalidVariable, number};

/// The environment variable with the limit of processor time for a module in seconds.
const TIME_VARIABLE: &str = "ZEUSM_COMPILER_SECONDS";

/// The limit that the user chose, if any.
///
/// # Errors
/// For a value that cannot be used.
pub fn read_limit() -> Result<Option<u32>, InvalidVariable> {
    number(env::var_os, TIME_VARIABLE, 0..=u32::MAX)
}
