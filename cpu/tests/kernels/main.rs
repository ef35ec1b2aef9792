//! Modules, kernels and launches, through the shared library and its Level Zero functions only.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
mod allocations;
#[cfg(target_os = "linux")]
mod bad_input;
#[cfg(target_os = "linux")]
mod cache;
#[cfg(target_os = "linux")]
#[allow(clippy::undocumented_unsafe_blocks)]
#[path = "../common/closed.rs"]
mod closed;
#[cfg(target_os = "linux")]
mod compiler;
#[path = "../common/counter.rs"]
mod counter;
#[cfg(target_os = "linux")]
#[allow(clippy::undocumented_unsafe_blocks)]
#[path = "../common/forks.rs"]
mod forks;
mod graphs;
mod hints;
mod images;
mod launches;
mod local_memory;
mod modules;
mod mutable;
mod order;
#[allow(clippy::undocumented_unsafe_blocks)]
#[path = "../common/process.rs"]
mod process;
mod programs;
#[path = "../common/graphs.rs"]
mod recorded;
mod runtime;
mod stacks;
mod timing;
mod tolerance;
