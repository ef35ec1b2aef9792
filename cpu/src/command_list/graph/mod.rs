//! Graphs: the commands of immediate lists, recorded once and executed any number of times.
//!
//! While a list captures, a graph records its commands (`object`), in the order of their appends, with those of the lists that
//! wait for them. An executable graph (`executable`) submits them as if they were appended again.

mod dump;
mod entry;
mod executable;
mod object;

pub use dump::dump;
pub use entry::*;
pub use executable::{ExecutableGraph, append, instantiate, source};
pub(super) use object::{Graph, Source};
