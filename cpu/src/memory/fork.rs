//! What a fork must not copy half changed, and what it must not share.

use super::backing::exports;
use super::{backing, map};

/// Keeps every other thread from allocating, freeing and exporting until this one calls [`release`] or [`inherit`].
///
/// The order of the locks: the map, the arenas, the exports.
pub fn hold() {
    map::hold();
    backing::hold();
    exports::hold();
}

/// Ends what [`hold`] began on this thread.
pub fn release() {
    exports::release();
    backing::release();
    map::release();
}

/// As [`release`], on the only thread of a child, which gets memory of its own for all that its parent shares with
/// other processes.
pub fn inherit() {
    exports::inherit();
    backing::release();
    map::release();
}
