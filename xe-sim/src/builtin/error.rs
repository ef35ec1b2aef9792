//! Why a kernel was not executed.

use std::io;

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
