//! A limit of the memory of a process, in words.

use std::fmt;

use crate::bytes::Bytes;

/// What limits the memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What limits what, in words.
    pub what: &'static str,
    /// The limit in bytes.
    pub limit: u64,
    /// What is free of it.
    pub free: u64,
    /// Whether someone has set it, and may raise it.
    pub is_set: bool,
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what, limit, free, ..
        } = *self;
        let (limit, free) = (Bytes(limit), Bytes(free));
        write!(formatter, "{what} to {limit}, of which {free} are free")
    }
}
