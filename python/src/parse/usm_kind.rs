//! The names and numbers of the kinds of USM.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use zeusm::usm::UsmKind;

/// The kind with the given name.
///
/// # Errors
/// `ValueError` for any other name.
pub(crate) fn usm_kind(usm_type: &str) -> PyResult<UsmKind> {
    [UsmKind::Device, UsmKind::Shared, UsmKind::Host]
        .into_iter()
        .find(|kind| kind.name() == usm_type)
        .ok_or_else(|| {
            PyValueError::new_err(format!(
                "usm_type must be 'device', 'shared' or 'host', not {usm_type:?}"
            ))
        })
}

/// The name of a kind's class after `MemoryUSM`.
pub(crate) fn class_suffix(kind: UsmKind) -> &'static str {
    match kind {
        UsmKind::Host => "Host",
        UsmKind::Device => "Device",
        UsmKind::Shared => "Shared",
    }
}

/// SYCL's number of a kind; 0 is for memory that is not USM.
pub(crate) fn kind_number(kind: UsmKind) -> i32 {
    match kind {
        UsmKind::Device => 1,
        UsmKind::Shared => 2,
        UsmKind::Host => 3,
    }
}
