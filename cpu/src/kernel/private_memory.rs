//! The private memory of the work-items, which the native runtime has on the stack of a thread.

use level_zero_sys as sys;

use super::Kernel;
use crate::abi::result::{ZeResult, describe};
use crate::opencl::Runtime;
use crate::system::stack::LARGEST_KERNEL;

/// The most private memory of a work-item; the rest is for the frames of the thread.
const MOST: u64 = LARGEST_KERNEL as u64 - (128 << 10);

impl Kernel {
    /// The bytes that a launch with groups of this size puts on a stack, at most [`LARGEST_KERNEL`]: OpenCL refuses a group that
    /// needs more, or executes its work-items one by one.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY` when a single work-item needs more.
    pub fn stack_size(&self, group: [usize; 3]) -> ZeResult<usize> {
        let private = self.limits.private_memory;
        // Where work-items wait for each other, those of a group are alive at once, and OpenCL reports the memory of one. Else it
        // reports that of a vector of work-items and of a single one together.
        let (together, single) = if self.info.has_barriers {
            let items = group.into_iter().fold(1, usize::saturating_mul);
            (private.saturating_mul(items as u64), private)
        } else {
            (private, private / (1 + vector_width()))
        };
        if single > MOST {
            describe(&format!(
                "a work-item of the kernel {} needs {single} bytes of private memory, and the device has {MOST}",
                self.info.name
            ));
            return Err(sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
        }
        Ok(usize::try_from(together).map_or(LARGEST_KERNEL, |size| size.min(LARGEST_KERNEL)))
    }
}

/// The most work-items that are executed at once.
fn vector_width() -> u64 {
    Runtime::get().map_or(1, |runtime| runtime.properties().vector_width)
}
