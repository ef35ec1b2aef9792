//! Objects of callers in messages.

use std::fmt::{self, Display, Formatter};

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::errors::normalized;

/// The most characters of an object's text in a message.
const MOST: usize = 1000;

/// An object as text. The text never raises, so it can be part of another error's message: an object whose `__str__` fails is
/// named by its type, and an integer with more digits than Python converts by its bits.
pub(crate) struct Shown<'a, 'py>(pub(crate) &'a Bound<'py, PyAny>);

impl Display for Shown<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(object) = self;
        let error = match object.str() {
            Ok(text) => return shortened(f, &text.to_string_lossy()),
            Err(error) => normalized(object.py(), error),
        };
        let py = object.py();
        // As of an integer with too many digits, also in a tuple.
        let is_too_long = error.is_instance_of::<PyValueError>(py);
        if is_too_long
            && object.is_exact_instance_of::<PyInt>()
            && let Ok(bits) = object.call_method0("bit_length")
        {
            return write!(f, "<an integer of {bits} bits>");
        }
        match object.get_type().name() {
            Ok(name) => write!(f, "<unprintable {} object>", name.to_string_lossy())?,
            Err(_) => f.write_str("<unprintable object>")?,
        }
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            // SAFETY: the function needs no more than an initialized interpreter. It has the interrupt raised again, at the next
            // check of signals, as the message's error replaces this one.
            unsafe { ffi::PyErr_SetInterrupt() };
        } else if !is_too_long {
            error.write_unraisable(py, Some(object));
        }
        Ok(())
    }
}

fn shortened(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => write!(f, "{}...", &text[..end]),
        None => f.write_str(text),
    }
}
