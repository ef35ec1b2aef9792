//! The stack of what a thread does, which a layer above names by a number.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// Without a destructor, so that a thread can read it until its end.
    static CURRENT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The stack of this thread's events.
pub(super) fn current() -> Option<u32> {
    CURRENT.get()
}

/// Names the stack of this thread's events until it is dropped. Scopes nest, and the innermost counts: they are dropped in the
/// reverse order, or a later one may name the stack of events after its drop.
#[derive(Debug)]
#[must_use]
pub struct StackScope {
    before: Option<u32>,
    /// It belongs to its thread.
    not_send: PhantomData<*const ()>,
}

impl StackScope {
    /// The number's meaning is the caller's.
    pub fn enter(stack: impl Into<Option<u32>>) -> Self {
        Self {
            before: CURRENT.replace(stack.into()),
            not_send: PhantomData,
        }
    }
}

impl Drop for StackScope {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}
