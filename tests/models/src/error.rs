//! Replaces the crate's errors by those that a pool uses.

use std::error::Error as Cause;

#[derive(Debug)]
pub enum Error {
    PoolLimit {
        size: usize,
        held: usize,
        limit: usize,
    },
    Pool {
        size: usize,
        used_bytes: usize,
        total_bytes: usize,
        limit: Option<usize>,
        cause: Box<Self>,
    },
    Callback(Box<dyn Cause + Send + Sync>),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// As the crate's; the provider of the models has no end.
    pub fn is_out_of_memory(&self) -> bool {
        false
    }
}
