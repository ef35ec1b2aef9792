//! What a user may do about an allocation that fails.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crate::error::Result;
use crate::process::Mutex;

/// An allocation that failed although everything unused went back to the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The bytes asked for.
    pub size: usize,
    /// The alignment asked for, in bytes; 0 leaves it to the pool.
    pub alignment: usize,
    /// The bytes of blocks in use.
    pub used_bytes: usize,
    /// The bytes held from the provider.
    pub total_bytes: usize,
    /// The most that may be.
    pub limit: Option<usize>,
}

type Function = dyn Fn(&Failure) -> Result<bool> + Send + Sync;

/// The user's function, if there is one.
#[derive(Default)]
pub(super) struct Callback(Mutex<Option<Arc<Function>>>);

impl Callback {
    pub(super) fn set(&self, function: Option<Arc<Function>>) {
        let before = std::mem::replace(&mut *self.0.lock(), function);
        // Outside the lock: dropping it may run anything.
        drop(before);
    }

    /// Whether the user says that it is worth another try. No lock is held meanwhile, so the function may use the pool;
    /// what fails in there does not call it again.
    pub(super) fn ask(&self, failure: impl FnOnce() -> Failure) -> Result<bool> {
        thread_local! {
            static ASKING: Cell<bool> = const { Cell::new(false) };
        }
        struct Asked;
        impl Drop for Asked {
            fn drop(&mut self) {
                ASKING.set(false);
            }
        }
        let Some(function) = self.0.lock().clone() else {
            return Ok(false);
        };
        if ASKING.replace(true) {
            return Ok(false);
        }
        // Also when the function panics.
        let _asked = Asked;
        function(&failure())
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.0.lock().is_some();
        write!(formatter, "Callback {{ set: {set} }}")
    }
}
