//! Memory across a fork: its tables are copied in a consistent state, and its exports are not shared with the child.

use super::backing::exports;
use super::{backing, map};

/// Blocks allocation, free and export in other threads until this thread calls [`parent`] or [`child`].
///
/// Lock order: the map, the arenas, the export table.
pub fn prepare() {
    map::at_fork().prepare();
    backing::at_fork().prepare();
    exports::prepare();
}

/// Undoes [`prepare`], in the parent.
pub fn parent() {
    exports::parent();
    backing::at_fork().parent();
    map::at_fork().parent();
}

/// Undoes [`prepare`], in the child, and replaces memory that the parent shares with other processes by private copies.
pub fn child() {
    exports::child();
    backing::at_fork().parent();
    map::at_fork().parent();
}
