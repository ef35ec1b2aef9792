//! What a fork must not copy half changed.

use super::{backing, map};

/// Keeps every other thread from allocating and freeing until this one calls [`release`].
pub fn hold() {
    map::hold();
    backing::hold();
}

/// Ends what [`hold`] began on this thread, or on the one that this one is a copy of.
pub fn release() {
    backing::release();
    map::release();
}
