//! What the operating system tells of the machine and of this process: processors, memory, time, mapped files, errors.

pub mod clock;
pub mod errno;
pub mod maps;
pub mod memory;
pub mod processor;
