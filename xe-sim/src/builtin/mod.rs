//! Emulation of the driver's built-in copy and fill kernels without execution units. A kernel is recognised by its machine
//! code, its arguments are decoded with the `.ze_info` table of its module, and its memory operations are executed on the
//! address space.

mod info;
mod kernels;
mod library;
mod programs;
mod skipped;
mod walker;

use std::io;

pub(crate) use skipped::check;
pub(crate) use walker::{Bases, walk};

use crate::memory::PageFault;

/// The reason why a walker's kernel was not executed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KernelError {
    #[error(transparent)]
    Fault(#[from] PageFault),
    #[error("the kernel {name} at {at:#x} is a user kernel: no execution unit is simulated")]
    User { at: u64, name: String },
    #[error("the driver's own kernel {0} is not simulated")]
    NotSimulated(String),
    #[error("the driver's library cannot be read: {0}")]
    Library(#[from] io::Error),
    #[error("the driver's own kernel {name} has a table that is not understood: {why}")]
    Table { name: String, why: String },
}
