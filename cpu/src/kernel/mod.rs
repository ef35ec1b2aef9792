//! Kernels, and the state that a launch captures.

mod arguments;
mod entry;
mod group;
mod private_memory;
mod query;

use std::sync::Arc;

use level_zero_sys as sys;

use crate::handle::object;
use crate::module::Module;
use crate::opencl;
use crate::spirv;

pub use arguments::{Arguments, set as set_argument};
pub use entry::{
    create, destroy, indirect_access, set_cache_config, set_indirect_access, set_scheduling_hint,
};
pub use group::{
    COOPERATIVE_GROUPS, set_group_size, set_offset, suggest_cooperative_groups, suggest_group_size,
};
pub use query::{name, properties as kernel_properties, source_attributes};
use zeusm_process::{ForkSafe, Mutex, MutexGuard, Reinit};

object!(Kernel, sys::_ze_kernel_handle_t, Kernel);

/// A kernel of a module.
pub struct Kernel {
    module: Arc<Module>,
    /// The module's description of it.
    info: spirv::Kernel,
    /// The compiler's properties of it.
    limits: opencl::KernelInfo,
    compiled: Arc<opencl::Kernel>,
    settings: ForkSafe<Settings>,
}

/// The state that the next launch captures.
#[derive(Clone)]
struct State {
    arguments: Arc<Arguments>,
    /// Work-items of a group, in each dimension.
    group: [u32; 3],
    /// Index of the first work-item.
    offset: [usize; 3],
    indirect: u32,
    /// The last suggested group size, and the number of work-items that it is for.
    suggested: Option<([u32; 3], [u32; 3])>,
}

/// A kernel's state, initially and now.
struct Settings {
    first: State,
    now: Mutex<State>,
}

impl Settings {
    fn new(first: State) -> Self {
        Self {
            now: Mutex::new(first.clone()),
            first,
        }
    }
}

impl Reinit for Settings {
    /// A copy of the parent's state, or the initial state if a thread of the parent held the lock.
    fn reinit(&self) -> Self {
        let now = self.now.try_lock();
        Self {
            first: self.first.clone(),
            now: Mutex::new(now.map_or_else(|| self.first.clone(), |now| now.clone())),
        }
    }
}

impl Kernel {
    fn state(&self) -> MutexGuard<'_, State> {
        self.settings.get().now.lock()
    }

    /// The module's description of it.
    pub fn info(&self) -> &spirv::Kernel {
        &self.info
    }

    /// The kernel that is launched.
    pub fn compiled(&self) -> &Arc<opencl::Kernel> {
        &self.compiled
    }

    /// The arguments, group size and offset of a launch that is appended now.
    pub fn launch_state(&self) -> (Arc<Arguments>, [u32; 3], [usize; 3]) {
        let state = self.state();
        (Arc::clone(&state.arguments), state.group, state.offset)
    }

    /// Whether its launches follow pointers in memory.
    pub fn is_indirect(&self) -> bool {
        self.state().indirect != 0
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.module.remove_kernel();
    }
}
