//! Why a kernel was not executed.

use crate::memory::PageFault;

/// The reason why a walker's kernel was not executed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KernelError {
    #[error(transparent)]
    Fault(#[from] PageFault),
    #[error("the kernel {name} at {at:#x} is a user kernel: no execution unit is simulated")]
    User { at: u64, name: String },
}
