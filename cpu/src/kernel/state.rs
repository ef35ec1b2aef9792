//! A kernel, and the state that the next launch captures.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;
use zeusm_process::{ForkSafe, Mutex, MutexGuard};

use super::arguments::Arguments;
use crate::abi::result::{ZeResult, described, ensure};
use crate::handle::object;
use crate::module::Module;
use crate::opencl;
use crate::spirv::{self, Argument};
use crate::system::stack::LARGEST_KERNEL;

object!(Kernel, sys::_ze_kernel_handle_t, Kernel);

/// A kernel of a module.
pub struct Kernel {
    /// By which the module knows that it has a kernel.
    pub(super) _module: Arc<Module>,
    /// The module's description of it.
    pub info: spirv::Kernel,
    /// The compiler's properties of it.
    pub(super) limits: opencl::KernelInfo,
    /// The kernel that is launched.
    pub compiled: Arc<opencl::Kernel>,
    pub(super) settings: ForkSafe<Mutex<State>>,
}

/// The state that the next launch captures. A fork's child has the initial one if a thread of the parent held the lock.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) arguments: Arc<Arguments>,
    /// Work-items of a group, in each dimension, once they are set.
    pub(super) group: Option<[u32; 3]>,
    /// Index of the first work-item.
    pub(super) offset: [usize; 3],
    pub(super) indirect: u32,
    /// The last suggested group size, and the number of work-items that it is for.
    pub(super) suggested: Option<([u32; 3], [u32; 3])>,
}

impl Kernel {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.settings.get().lock();
        let count = self.info.arguments.len();
        if state.arguments.0.len() != count {
            state.arguments = Arc::new(Arguments(vec![None; count]));
        }
        state
    }

    /// The arguments, group size and offset of a launch that is appended now.
    pub fn launch_state(&self) -> (Arc<Arguments>, [u32; 3], [usize; 3]) {
        let state = self.state();
        let group = state.group.or(self.info.required_group_size);
        let arguments = Arc::clone(&state.arguments);
        (arguments, group.unwrap_or([1; 3]), state.offset)
    }

    /// Sets every argument, each from a pointer to its value; for local memory, to its size.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_NULL_POINTER` for a null array of a kernel with arguments; else as for one argument.
    ///
    /// # Safety
    /// `values` must be null or hold as many pointers as the kernel has arguments. Each must be null or refer to as many bytes as
    /// its argument has; for local memory, to a `usize`.
    pub unsafe fn set_arguments(&self, values: *const *const c_void) -> ZeResult {
        let count = self.info.arguments.len();
        ensure(
            count == 0 || !values.is_null(),
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        )?;
        let mut state = self.state();
        let arguments = Arc::make_mut(&mut state.arguments);
        for (index, argument) in self.info.arguments.iter().enumerate() {
            // SAFETY: the array has a pointer for each argument, and a value that is not null the bytes of its argument's
            // type, which for local memory is `usize`; neither need be aligned.
            unsafe {
                let value = values.add(index).read_unaligned();
                let size = match argument {
                    Argument::Local if value.is_null() => Some(0),
                    Argument::Local => Some(value.cast::<usize>().read_unaligned()),
                    _ => None,
                };
                arguments.set(&self.info, index, size, value)?;
            }
        }
        Ok(())
    }

    /// Checks that the device can give a work-group all its local memory: that of `arguments`, and that which the kernel
    /// declares itself. Returns how many bytes are left.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY`, as Intel's driver returns.
    pub fn check_local_memory(&self, arguments: &Arguments) -> ZeResult<u64> {
        let most = opencl::Runtime::get().map_or(0, |runtime| runtime.properties.local_memory);
        let needed = arguments
            .local_memory()
            .saturating_add(self.limits.local_memory);
        if needed > most {
            let name = &self.info.name;
            return Err(described(
                sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
                format_args!(
                    "a work-group of the kernel {name} needs {needed} bytes of local memory, and the device has {most}"
                ),
            ));
        }
        Ok(most - needed)
    }

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

    /// Whether its launches follow pointers in memory.
    pub fn is_indirect(&self) -> bool {
        self.state().indirect != 0
    }
}
