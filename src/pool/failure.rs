//! The failure callback: the user's function that is called before an allocation fails.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::process::Mutex;

/// An allocation that failed even after all free memory was returned to the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The requested size in bytes.
    pub size: usize,
    /// The requested alignment in bytes; 0 leaves it to the pool.
    pub alignment: usize,
    /// The bytes of blocks in use.
    pub used_bytes: usize,
    /// The bytes held from the provider.
    pub total_bytes: usize,
    /// The pool's limit on `total_bytes`.
    pub limit: Option<usize>,
}

type Function = dyn Fn(&Failure) -> Result<bool> + Send + Sync;

/// The user's function, if one is set.
#[derive(Default)]
pub(super) struct Callback(Mutex<Option<Arc<Function>>>);

impl Callback {
    pub(super) fn set(&self, function: Option<Arc<Function>>) {
        let before = std::mem::replace(&mut *self.0.lock(), function);
        // Outside the lock: the drop may run arbitrary code.
        drop(before);
    }

    /// Calls the function; `true` asks for a retry. No lock is held, so the function may use the pool. An allocation that
    /// fails inside of it does not call it again.
    pub(super) fn call(&self, failure: impl FnOnce() -> Failure) -> Result<bool> {
        thread_local! {
            static IS_CALLING: Cell<bool> = const { Cell::new(false) };
        }
        struct Guard;
        impl Drop for Guard {
            fn drop(&mut self) {
                IS_CALLING.set(false);
            }
        }
        let Some(function) = self.0.lock().clone() else {
            return Ok(false);
        };
        if IS_CALLING.replace(true) {
            return Ok(false);
        }
        // Resets the flag also when the function panics.
        let _guard = Guard;
        function(&failure())
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.0.lock().is_some();
        write!(formatter, "Callback {{ set: {set} }}")
    }
}
