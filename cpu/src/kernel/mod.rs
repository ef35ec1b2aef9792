//! Kernels, and the state that a launch captures.

mod arguments;
mod entry;
mod group;
mod query;
mod state;

pub use arguments::Arguments;
pub use entry::{
    create, indirect_access, set_argument, set_cache_config, set_indirect_access,
    set_scheduling_hint,
};
pub use group::{
    COOPERATIVE_GROUPS, set_group_size, set_offset, suggest_cooperative_groups, suggest_group_size,
};
pub use query::{allocations, name, properties as kernel_properties, source_attributes};
pub use state::Kernel;
