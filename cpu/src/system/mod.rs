//! The machine and this process as the operating system reports them: processors, memory, stacks, time,
//! libraries, variables, signals.

pub mod clock;
pub mod environment;
pub mod imports;
pub mod interrupt;
pub mod library;
pub mod memory;
pub mod processor;
pub mod signals;
pub mod stack;

/// The size of a page.
pub const PAGE: usize = 4096;
