//! The machine and this process as the operating system reports them: processors, memory, stacks, time,
//! libraries, variables, signals.

pub mod clock;
pub mod memory;
#[cfg(target_os = "linux")]
#[path = "linux/mod.rs"]
mod platform;
#[cfg(windows)]
#[path = "windows/mod.rs"]
mod platform;
pub mod processor;
pub mod stack;

pub use platform::{environment, futex, library, path, signals};
#[cfg(target_os = "linux")]
pub use platform::{imports, interrupt};

/// The size of a page.
pub const PAGE: usize = 4096;
