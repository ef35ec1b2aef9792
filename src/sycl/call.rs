//! A closure as a function with data, which the frame of a handler of exceptions calls.

use std::ffi::c_void;
use std::ptr;

use super::error::Error;

/// It takes its call, and returns null.
pub(super) type Function = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

pub(super) struct Call<F, T> {
    body: Option<F>,
    /// `None` when an exception was thrown.
    answer: Option<T>,
}

impl<T, F: FnOnce() -> T> Call<F, T> {
    pub(super) fn of(body: F) -> Self {
        Self {
            body: Some(body),
            answer: None,
        }
    }

    /// The function for this type of call.
    pub(super) fn function(&self) -> Function {
        Self::run
    }

    /// The answer of the closure, which called `function`, or the exception with its text.
    pub(super) fn answer(self, function: &'static str, text: Option<String>) -> Result<T, Error> {
        self.answer.ok_or_else(|| Error::Thrown {
            function,
            text: text.unwrap_or_default(),
        })
    }

    /// # Safety
    /// `call` must be a `Self` without another reference.
    unsafe extern "C-unwind" fn run(call: *mut c_void) -> *mut c_void {
        // SAFETY: the caller guarantees that `call` is a `Self` without another reference.
        let call = unsafe { &mut *call.cast::<Self>() };
        call.answer = call.body.take().map(|body| body());
        ptr::null_mut()
    }
}

/// The text of the exception that a call of `throw` threw.
#[cfg(test)]
pub(super) fn thrown<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::Thrown { function, text }) => {
            assert_eq!(function, "throw");
            text
        }
        answer => panic!("{answer:?}"),
    }
}
