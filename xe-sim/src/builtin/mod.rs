//! Emulation of the driver's built-in copy and fill kernels without execution units. A kernel is recognised by its machine
//! code, its arguments are decoded with the `.ze_info` table of its module, and its memory operations are executed on the
//! address space.

mod info;
mod kernels;
mod launch;
mod library;
mod programs;
mod skipped;
mod walker;
mod zebin;

pub(crate) use library::KernelError;
pub(crate) use skipped::check;
pub(crate) use walker::{Bases, walk};
