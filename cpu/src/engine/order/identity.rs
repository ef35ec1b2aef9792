//! The identity of a signal or a stream for the checker.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A number that no other object of the process has or had. Addresses are used again, while the checker still knows objects
/// that are gone.
pub struct Identity(pub usize);

impl Default for Identity {
    fn default() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
