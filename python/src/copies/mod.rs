//! The copies, fills and hints of memory objects, blocking and asynchronous.

mod asynchronous;
mod blocking;
mod cuda;
mod source;

pub(crate) use source::Source;
