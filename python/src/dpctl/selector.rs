//! The parts of `ONEAPI_DEVICE_SELECTOR` that hide Level Zero's devices from SYCL.
//!
//! Source: the environment variables of oneAPI DPC++, `ONEAPI_DEVICE_SELECTOR`.

/// Why SYCL shows no device of Level Zero with this value.
pub(super) fn cause(value: &str) -> String {
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
