//! Pools for Python: `MemoryPool`, and the keyword `pool` of the memory classes.

mod class;
mod figures;
mod supply;

pub(super) use class::{PyMemoryPool, get_pool};
pub(super) use figures::{PyPoolReport, PyPoolScope, PyPoolStatistics};
pub(super) use supply::Supply;
