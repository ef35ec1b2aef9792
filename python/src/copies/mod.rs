//! The copies, fills and hints of memory objects, blocking and asynchronous.

mod asynchronous;
mod blocking;
mod cuda;
