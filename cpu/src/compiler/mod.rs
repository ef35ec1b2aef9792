//! Building modules in a process of its own.
//!
//! The compiler does not validate its input: on a corrupt module it may crash, exit or hang, and would take the
//! caller's process down with it. So a second process compiles and returns the device's own code, which this process
//! only loads. That process is this library started as a program (`start`), so there is no second file to install. It is
//! no child of this process (`supervisor`), serves further modules, and exits with this process.

mod client;
mod execute;
mod limit;
mod message;
mod protocol;
mod server;
mod start;
mod supervisor;

pub use client::{compile, translate};
pub use limit::read_limit;
pub use message::{Failure, Job};
