//! The private memory of the work-items, which the native runtime has on the stack of a thread.

use super::Kernel;
use crate::system::stack::LARGEST_KERNEL;

impl Kernel {
    /// The most bytes that a launch with groups of this size puts on a stack, at most [`LARGEST_KERNEL`].
    pub fn stack_size(&self, group: [usize; 3]) -> usize {
        let private = usize::try_from(self.limits.private_memory).unwrap_or(usize::MAX);
        // Where work-items wait for each other, those of a group are alive at once, and OpenCL reports the memory of one. Else it
        // reports that of all which are executed at once.
        let together = if self.info.has_barriers {
            group.into_iter().fold(private, usize::saturating_mul)
        } else {
            private
        };
        together.min(LARGEST_KERNEL)
    }
}
