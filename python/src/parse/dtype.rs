//! Element types: NumPy's dtypes and their names.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use zeusm::suai::{ItemType, Kind};

const SUPPORTED: &str =
    "bool, int8 to int64, uint8 to uint64, float16 to float64, complex64 and complex128";

/// Reads any object that NumPy accepts as a dtype; names like "float32" do not need NumPy.
///
/// # Errors
/// `TypeError` for other objects, and for unsupported types.
pub(crate) fn read(dtype: &Bound<'_, PyAny>) -> PyResult<ItemType> {
    if let Ok(name) = dtype.cast::<PyString>()
        && let Some(item) = named(&name.to_string_lossy())
    {
        return Ok(item);
    }
    let text: String = dtype
        .py()
        .import("numpy")?
        .call_method1("dtype", (dtype,))?
        .getattr("str")?
        .extract()?;
    text.parse()
        .ok()
        .filter(|&item| is_supported(item))
        .ok_or_else(|| {
            PyTypeError::new_err(format!(
                "arrays of {text} are not supported, only {SUPPORTED} in this machine's byte order"
            ))
        })
}

/// Whether arrays support such elements.
pub(crate) fn is_supported(item: ItemType) -> bool {
    let computes = match item.kind() {
        Kind::Void => false,
        Kind::Float => item.size() <= 8,
        Kind::Complex => item.size() <= 16,
        Kind::Bool | Kind::Int | Kind::Uint => true,
    };
    computes && item.order().is_native()
}

/// The reason why an array of such elements is refused.
pub(crate) fn unsupported(item: ItemType) -> String {
    format!(
        "elements of type '{item}' are not supported, only {SUPPORTED} in this machine's byte order"
    )
}

/// The `numpy.dtype`.
pub(crate) fn object(py: Python<'_>, item: ItemType) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?
        .call_method1("dtype", (item.to_string(),))
}

/// The type's name: "float32".
pub(crate) fn name(item: ItemType) -> String {
    let bits = item.size() * 8;
    match item.kind() {
        Kind::Bool => "bool".to_owned(),
        Kind::Int => format!("int{bits}"),
        Kind::Uint => format!("uint{bits}"),
        Kind::Float => format!("float{bits}"),
        Kind::Complex => format!("complex{bits}"),
        Kind::Void => format!("void{bits}"),
    }
}

fn named(text: &str) -> Option<ItemType> {
    if text == "bool" {
        return "b1".parse().ok();
    }
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let letter = match text.strip_suffix(digits)? {
        "int" => 'i',
        "uint" => 'u',
        "float" => 'f',
        "complex" => 'c',
        _ => return None,
    };
    let bits = digits.parse::<usize>().ok()?;
    format!("{letter}{}", bits / 8)
        .parse()
        .ok()
        .filter(|&item| bits.is_multiple_of(8) && is_supported(item))
}
