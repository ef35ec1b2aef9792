//! The interface of a SPIR-V module: its kernels and their arguments, read from its instructions.
//!
//! Level Zero passes argument values as a size and bytes only. Whether an argument is a pointer, a number, local memory
//! or a structure passed by value determines how it is set in OpenCL, and only the module tells. [`Module::parse`]
//! walks the words once and keeps that information; it skips unknown instructions, so newer extensions are accepted.
//! The bytes are not trusted: every read is checked, and no allocation is larger than the module itself.
//!
//! Source: the SPIR-V specification, sections 2.3 (physical layout), 2.4 (logical layout) and 3; the OpenCL SPIR-V
//! environment specification for kernel arguments.

mod barriers;
mod bfloat16;
mod functions;
mod groups;
mod interface;
mod kernel;
mod shuffles;
mod types;
mod words;

pub use barriers::in_order;
pub use interface::Module;
pub use kernel::{Argument, Kernel};
pub use types::Image;

#[cfg(test)]
mod tests;
