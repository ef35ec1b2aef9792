//! A preloaded library that simulates the Linux **xe** driver and the engines of an Intel GPU, so that Intel's own Level
//! Zero driver (NEO, `libze_intel_gpu`) can allocate, copy and fill on a machine without a GPU.
//!
//! The user-mode driver calls the kernel through `ioctl` and `mmap` on the device nodes. [`preload`] intercepts these calls,
//! [`kernel`] implements them, [`memory`] holds buffer objects and GPU address spaces, [`engine`] executes the command
//! streams, and [`builtin`] emulates the driver's built-in copy and fill kernels, which it recognises by their machine code.
//! [`machine`] describes the simulated GPUs as data, [`faults`] injects failures, and [`launch`] runs programs with the
//! library.
//!
//! Execution units are not emulated: a user kernel bans its exec queue, and the driver reports a lost device. Caches are
//! not emulated either, so a passing test shows that the driver is used correctly, not that the hardware behaves the same.

mod builtin;
mod engine;
mod faults;
mod kernel;
pub mod launch;
mod machine;
mod memory;
mod preload;
mod report;
mod settings;
mod uapi;
