//! The selection of the Level Zero library for this process.
//!
//! An Intel GPU with a working driver is preferred, through the system's loader; else the CPU runtime of this package is
//! used. If a GPU is present but cannot be used, [`Runtime::warning`] says so. The environment variable `ZEUSM_RUNTIME`
//! (`auto`, `system`, `cpu` or the absolute path of a library) overrides the selection.

mod cpu;
mod extension;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(windows)]
#[path = "windows.rs"]
mod platform;
mod selection;
mod serving;

pub use cpu::CPU_LIBRARY_VARIABLE;
pub use extension::CpuDevices;
#[cfg(target_os = "linux")]
pub use platform::{GpuNode, gpu_nodes};
pub use selection::POOL_VARIABLE;
pub use serving::{RUNTIME_VARIABLE, Runtime, RuntimeKind};
