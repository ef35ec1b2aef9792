//! What users are told where SYCL does not find Level Zero's devices: the parts of `ONEAPI_DEVICE_SELECTOR` that hide them.
//!
//! Source: the environment variables of oneAPI DPC++, `ONEAPI_DEVICE_SELECTOR`.

use std::env;
use std::ffi::CString;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

/// SYCL's variable that chooses devices.
const SELECTOR: &str = "ONEAPI_DEVICE_SELECTOR";

/// Warns that SYCL packages cannot use zeusm's memory, where a variable is the likely cause.
pub(crate) fn warn_of_selector(py: Python<'_>, reason: &str) -> PyResult<()> {
    if env::var_os(SELECTOR).is_none() {
        return Ok(());
    }
    let text = CString::new(format!("SYCL packages cannot use zeusm's memory: {reason}"))?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
}

/// The hint in error messages on how a SYCL runtime finds Level Zero's devices.
pub(crate) fn show_level_zero() -> String {
    let now = |name| env::var(name).map(|value| format!("{name}, now {value:?},"));
    let mut text = "import zeusm before dpctl".to_owned();
    if let (Ok(value), Ok(selector)) = (env::var(SELECTOR), now(SELECTOR)) {
        let cause = cause(&value);
        text += &format!("; have {selector} choose devices of level_zero: {cause}");
    }
    if let Ok(mask) = now("ZE_AFFINITY_MASK") {
        text += &format!("; have {mask} leave a GPU");
    }
    text
}

/// Why SYCL shows no device of Level Zero with this value.
fn cause(value: &str) -> String {
    let parts = value.split(';').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    let (hiding, choosing): (Vec<_>, Vec<_>) = parts.partition(|part| part.starts_with('!'));
    let is_level_zeros = |part: &&&str| {
        let backend = part.trim_start_matches('!').split(':').next();
        backend.is_some_and(|name| name == "*" || name.eq_ignore_ascii_case("level_zero"))
    };
    let chosen: Vec<_> = choosing.iter().filter(is_level_zeros).copied().collect();
    let hidden: Vec<_> = hiding.iter().filter(is_level_zeros).copied().collect();
    match (choosing.is_empty(), chosen.is_empty(), hidden.is_empty()) {
        (false, true, _) => "none of its parts names level_zero".to_owned(),
        (_, _, false) => format!("its part {:?} hides them", hidden.join(";")),
        _ => format!("its part {:?} names none of them", chosen.join(";")),
    }
}
