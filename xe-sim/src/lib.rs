//! A library to preload that stands in for the Linux **xe** driver and for the engines of an Intel GPU, so that Intel's
//! own Level Zero driver (NEO, `libze_intel_gpu`) comes up, allocates, copies and fills on a machine without a GPU.
//!
//! The driver talks to the kernel by `ioctl` and `mmap` on the device nodes. [`preload`] takes these calls, [`kernel`]
//! answers them as the kernel does, [`memory`] holds buffers and the address spaces of the GPU, [`engine`] runs the
//! command streams that the driver writes, and [`builtin`] knows the driver's own copy and fill kernels by their machine
//! code. Which GPUs there are is data, in [`machine`]; what goes wrong on purpose is in [`faults`]. [`launch`] runs programs
//! with it.
//!
//! No execution unit is emulated: a kernel of a user's stops the run of its queue, and the driver reports a lost device.
//! There are no caches either, so what passes here is right against the driver's logic, not against silicon.

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
