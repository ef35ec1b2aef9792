//! What a fork must not copy half changed, and what it must not share.

use super::backing::exports;
use super::{backing, map};

/// Keeps every other thread from allocating, freeing and exporting until this one calls [`parent`] or [`child`].
///
/// The order of the locks: the map, the arenas, the exports.
pub fn prepare() {
    map::prepare();
    backing::prepare();
    exports::prepare();
}

/// Ends what [`prepare`] began on this thread.
pub fn parent() {
    exports::parent();
    backing::parent();
    map::parent();
}

/// As [`parent`], on the only thread of a child, which gets memory of its own for all that its parent shares with
/// other processes.
pub fn child() {
    exports::child();
    backing::parent();
    map::parent();
}
