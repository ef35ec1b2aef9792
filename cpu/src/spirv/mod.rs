//! What a SPIR-V module says about its kernels, read from its own instructions.
//!
//! Level Zero hands over argument values as a size and bytes only. Whether argument 3 is a pointer, a number, local
//! memory or a structure passed by value decides how it must be given to the compiler below, and the module is the
//! only one that knows. [`Module::parse`] walks the words once and keeps just that; what it does not know it skips,
//! so extensions newer than this crate do no harm. Nothing in here trusts the bytes: every read is checked, and no
//! allocation is larger than the module itself.
//!
//! Source: the SPIR-V specification, sections 2.3 (physical layout), 2.4 (logical layout) and 3; the OpenCL SPIR-V
//! environment specification for kernel arguments.

mod error;
mod interface;
mod types;
mod words;

pub use error::Error;
pub use interface::{Argument, Kernel, Module};

#[cfg(test)]
mod tests;
