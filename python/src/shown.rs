//! Objects and exceptions of callers as the text of a message, and zeusm's own as tables of notebooks.
//!
//! Making the text runs the object's code and, between two bytecodes or items, the handlers of signals. Their exceptions, such as
//! that of a timeout, must not be lost, so that each text is made here, and never by `{object}` in a format: that prints an
//! exception and goes on.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::errors::{is_of_caller, normalized};

/// The most characters of an object's text in a message.
const MOST: usize = 1000;

/// The error that `about` makes of the object's text, of a string in quotes. An exception of the object's own code, or of a handler, takes its place.
pub(crate) fn naming(object: &Bound<'_, PyAny>, about: impl FnOnce(&str) -> PyErr) -> PyErr {
    let made = match object.is_instance_of::<PyString>() {
        true => repr(object),
        false => text(object),
    };
    made.map_or_else(|raised| raised, |text| about(&text))
}

/// The object's text, shortened. An integer with more digits than Python converts is named by its bits.
///
/// # Errors
/// Those [of the object's own code](is_of_caller).
pub(crate) fn text(object: &Bound<'_, PyAny>) -> PyResult<String> {
    shown(object, object.str())
}

/// As [`text`], for the object as in source code.
///
/// # Errors
/// As for [`text`].
pub(crate) fn repr(object: &Bound<'_, PyAny>) -> PyResult<String> {
    shown(object, object.repr())
}

fn shown(object: &Bound<'_, PyAny>, made: PyResult<Bound<'_, PyString>>) -> PyResult<String> {
    let py = object.py();
    let error = match made {
        Ok(text) => {
            let text = text.to_string_lossy();
            return Ok(match text.char_indices().nth(MOST) {
                Some((end, _)) => format!("{}...", &text[..end]),
                None => text.into_owned(),
            });
        }
        Err(error) => normalized(py, error),
    };
    // Not Python's own, as that of an integer with too many digits, also in a tuple.
    if is_of_caller(py, &error) {
        return Err(error);
    }
    if object.is_exact_instance_of::<PyInt>() {
        let bits: u64 = object.call_method0("bit_length")?.extract()?;
        return Ok(format!("<an integer of {bits} bits>"));
    }
    Ok(format!("<unprintable {} object>", class_name(object)))
}

/// The name of the object's class.
pub(crate) fn class_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().name();
    name.map_or_else(
        |_| "?".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// What a notebook shows of an object, as HTML: a table of one row, and text below it.
pub(crate) fn table<'py>(
    py: Python<'py>,
    caption: &str,
    cells: &[(&str, String)],
    below: &str,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("zeusm._notebook")?
        .call_method1("html", (caption, cells, below))
}
