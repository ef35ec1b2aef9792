//! A front of OpenCL for libraries that compile OpenCL C for a GPU, and look for an OpenCL device beside the Level Zero device:
//! oneMKL for its Fourier transforms, oneDNN for its reference kernels.
//!
//! A program is built from source, by the front end of the processor's OpenCL and then as any module. Its binary is the runtime's native
//! module, which the library hands to `zeModuleCreate`. Nothing else is there: no queue, no memory, no kernel.
//!
//! Source: the OpenCL 3.0 API specification, and `cl_khr_icd` for how a loader finds a platform.

mod announce;
mod icd;
mod object;
mod platform;
mod program;

pub use announce::{announce, child};
