//! The failure callback: the user's function that is called before an allocation fails.

use std::cell::RefCell;
use std::ptr;
use std::sync::Arc;

use zeusm_process::Mutex;

use crate::error::Result;

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
    /// fails inside of it does not call it again; one of another pool calls that pool's function.
    pub(super) fn call(&self, failure: Failure) -> Result<bool> {
        let Some(function) = self.0.lock().clone() else {
            return Ok(false);
        };
        let Some(_call) = Call::begin(self) else {
            return Ok(false);
        };
        function(&failure)
    }
}

/// A call of a function, which ends with the drop, also when the function panics.
struct Call(usize);

thread_local! {
    /// The callbacks in whose calls this thread is, by address.
    static CALLS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl Call {
    /// `None` in a call of the same callback by this thread, and while the thread's variables are being destroyed.
    fn begin(callback: &Callback) -> Option<Self> {
        let address = ptr::from_ref(callback).addr();
        let begin = |calls: &RefCell<Vec<usize>>| {
            let mut calls = calls.borrow_mut();
            let is_new = !calls.contains(&address);
            is_new.then(|| calls.push(address))
        };
        CALLS.try_with(begin).ok().flatten()?;
        Some(Self(address))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let end = |calls: &RefCell<Vec<usize>>| {
            calls.borrow_mut().retain(|address| *address != self.0);
        };
        // Without the variable there is no list to leave.
        let _ = CALLS.try_with(end);
    }
}
