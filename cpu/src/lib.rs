//! A Level Zero runtime on the CPU: one shared library that is a driver behind a loader, and takes the loader's place
//! where there is none.
//!
//! The modules in layers, from the ground up; `tools/layers.py` checks that none uses one above it:
//!
//! - `announcement`: which forks have a child that uses the runtime. `system`: the machine, as the operating system reports it.
//!   `abi`: result codes, arguments, extensible structures. `handle`: handles, checked on every use.
//! - `check`: the checker, off by default, which the modules below tell what happens.
//! - `memory`: allocations, the files that share them with other processes, and what keeps one alive while it is in use.
//! - `engine`: the order of commands and the threads that execute them, whatever they do.
//! - `opencl`: the runtime that executes kernels. `spirv`: the interfaces of modules. `compiler`: the process that
//!   builds modules.
//! - `driver`, `device`, `context`: the objects that a program starts with, and their properties.
//! - `virtual_memory`: reserved addresses and physical memory. `usm`: the entry points of memory, IPC among them. `event`,
//!   `operation` (copies, fills, timestamps), `command_list`, `queue`: submission and synchronization.
//! - `images`: images and samplers, and the copies of images.
//! - `module`, `kernel`, `launch`: kernels, from SPIR-V to the operation that launches one.
//! - `front`: OpenCL for libraries that compile OpenCL C and hand the module to Level Zero.
//! - `fork`: the handlers of a fork, which call those of the modules below. `init`: initialisation.
//! - `exit`: the report at the end of the process.
//! - `ddi`: the API's boundary: every function, the tables that loaders ask for, and what a loader has beside the API, where there
//!   is none.
//!
//! On Windows, modules that need Linux are absent, and what others use of them is in files of that name. The compiler builds in the
//! calling process there.
//!
//! Source: the Level Zero specification; where it leaves a choice, the function's documentation states the one made.
#![deny(missing_docs, clippy::disallowed_types)]
#![allow(non_snake_case)]

pub mod abi;
#[cfg(target_os = "linux")]
pub mod announcement;
#[cfg(target_os = "linux")]
pub mod check;
#[cfg(windows)]
#[path = "check/absent.rs"]
pub mod check;
pub mod command_list;
#[cfg(target_os = "linux")]
pub mod compiler;
#[cfg(windows)]
#[path = "compiler/in_process.rs"]
pub mod compiler;
pub mod context;
pub mod ddi;
pub mod device;
pub mod driver;
pub mod engine;
pub mod event;
#[cfg(target_os = "linux")]
mod exit;
#[cfg(target_os = "linux")]
pub mod fork;
#[cfg(target_os = "linux")]
mod front;
pub mod handle;
pub mod images;
pub mod init;
pub mod kernel;
pub mod launch;
pub mod memory;
pub mod module;
pub mod opencl;
pub mod operation;
pub mod queue;
pub mod spirv;
pub mod sysman;
pub mod system;
pub mod usm;
#[cfg(target_os = "linux")]
pub mod virtual_memory;
#[cfg(windows)]
#[path = "virtual_memory/absent.rs"]
pub mod virtual_memory;
