//! The execution of commands: by the thread that finds them ready, by workers, or natively.

mod engine;
mod work;
mod workers;

#[cfg(test)]
pub use engine::{Engine, SIMULATED};
#[cfg(test)]
pub use workers::{Job, Workers};

pub use engine::begin;
