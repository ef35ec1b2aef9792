//! Kernels: what is set on one before a launch, and what can be asked about it.

mod arguments;
mod entry;
mod group;
mod query;

use std::sync::Arc;

use level_zero_sys as sys;

use crate::handle::object;
use crate::module::Module;
use crate::opencl;
use crate::process::renew::{Renew, Renewed};
use crate::process::sync::{Mutex, MutexGuard};
use crate::spirv;

pub use arguments::{Arguments, set as set_argument};
pub use entry::{create, destroy, indirect_access, set_cache_config, set_indirect_access};
pub use group::{
    COOPERATIVE_GROUPS, set_group_size, set_offset, suggest_cooperative_groups, suggest_group_size,
};
pub use query::{name, properties as kernel_properties, source_attributes};

object!(Kernel, sys::_ze_kernel_handle_t, Kernel);

/// A kernel of a module.
pub struct Kernel {
    module: Arc<Module>,
    /// What the module says about it.
    facts: spirv::Kernel,
    /// What the compiler made of it.
    limits: opencl::KernelFacts,
    compiled: Arc<opencl::Kernel>,
    settings: Renewed<Settings>,
}

/// What the next launch takes along.
#[derive(Clone)]
struct State {
    arguments: Arc<Arguments>,
    /// Work-items of a group, in each dimension.
    group: [u32; 3],
    /// Index of the first work-item.
    offset: [usize; 3],
    indirect: u32,
    /// The last question for a group size and its answer.
    suggested: Option<([u32; 3], [u32; 3])>,
}

/// What a kernel has been set to.
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

impl Renew for Settings {
    /// As the parent set it, unless a thread of the parent was about to: nothing is set then.
    fn renew(&self) -> Self {
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

    /// What the module says about it.
    pub fn facts(&self) -> &spirv::Kernel {
        &self.facts
    }

    /// The kernel that is launched.
    pub fn compiled(&self) -> &Arc<opencl::Kernel> {
        &self.compiled
    }

    /// The arguments, group size and offset of a launch that is appended now.
    pub fn captured(&self) -> (Arc<Arguments>, [u32; 3], [usize; 3]) {
        let state = self.state();
        (Arc::clone(&state.arguments), state.group, state.offset)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.module.leave();
    }
}
