//! A Level Zero runtime on the CPU: one shared library that is a driver behind a loader, and a loader where there is
//! none.
//!
//! - `ddi`: the API's boundary; one table declares every function and the tables that loaders ask for.
//! - `loader`: what a loader has beside the API.
//! - `handle`: handles, checked on every use.
//! - `driver`, `device`, `context`, `machine`: what there is, told truthfully.
//! - `usm`: memory.
//! - `command_list`, `queue`, `fence`, `event`: submission and synchronization.
//! - `module`, `kernel`, `launch`: kernels, which `spirv` reads, `compiler` builds and `opencl` runs.
//! - `operation`: what can be submitted, and `engine`: how it runs.
//! - `fork`: what a child of a fork gets, and `sync`: the locks that this takes.
//!
//! Source: the Level Zero specification; where it leaves a choice, the function's documentation says what was chosen.
#![deny(missing_docs)]
#![allow(non_snake_case)]

pub mod answer;
pub mod arguments;
pub mod clock;
pub mod command_list;
pub mod compiler;
pub mod context;
pub mod ddi;
pub mod device;
pub mod driver;
pub mod engine;
pub mod errno;
pub mod event;
pub mod fence;
pub mod fork;
pub mod handle;
pub mod kernel;
pub mod launch;
pub mod loader;
pub mod machine;
pub mod maps;
pub mod module;
pub mod newer;
pub mod opencl;
pub mod operation;
pub mod queue;
pub mod renew;
pub mod spirv;
pub mod sync;
pub mod usm;
