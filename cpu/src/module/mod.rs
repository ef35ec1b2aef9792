//! Modules: SPIR-V built for this machine.

mod build;
mod built;
#[cfg(target_os = "linux")]
mod cache;
#[cfg(windows)]
#[path = "cache/absent.rs"]
mod cache;
mod entry;
mod flags;
mod lockstep;
mod log;
mod native;
mod query;
mod sealed;

pub use build::Source;
pub use built::Module;
pub use cache::{describe as describe_cache, read_settings as read_cache_settings};
pub use entry::{create, destroy, link};
pub use log::{BuildLog, text as log_text};
pub use query::{
    function_pointer, global_pointer, kernel_names, native_binary, properties as module_properties,
};
