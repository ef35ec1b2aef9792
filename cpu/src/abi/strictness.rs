//! Whether arguments that Intel's driver tolerates are errors.

use std::env;

use zeusm_process::Lazy;
use zeusm_process::variables::{InvalidVariable, switch};

/// With `1`, arguments are checked by the letter of the specification. For tests.
const STRICT: &str = "ZEUSM_CPU_STRICT";

/// Whether arguments are checked by the letter of the specification. Otherwise the runtime tolerates what Intel's driver
/// does, since programs rely on it: structures without `stype`, kernel arguments of another size than declared, fills with
/// any pattern, page sizes and mappings of nothing, queries for null and for memory of another context, and modules that are destroyed
/// before their kernels.
pub fn is_strict() -> bool {
    static IS_STRICT: Lazy<bool> = Lazy::new();
    *IS_STRICT.get_or_make(|| read_strictness().unwrap_or_default())
}

/// The variable's value.
///
/// # Errors
/// For one that cannot be used.
pub fn read_strictness() -> Result<bool, InvalidVariable> {
    Ok(switch(env::var_os, STRICT)?.unwrap_or_default())
}
