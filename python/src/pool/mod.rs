//! Pools for Python: `MemoryPool`, and the keyword `pool` of the memory classes.

mod class;
mod figures;
pub(crate) mod held;
mod limit;
mod source;
mod suspend;

pub(crate) use class::{PyMemoryPool, get_pool};
pub(crate) use figures::{PyPoolReport, PyPoolScope, PyPoolStatistics};
pub(crate) use limit::set_memory_limit;
pub(crate) use source::AllocationSource;
