//! An OpenCL runtime for the CPU, opened at run time, that compiles and runs kernels.
//!
//! Nothing in here knows Level Zero. [`Runtime`] is the library, its CPU device and a context; [`Program`],
//! [`Kernel`], [`Image`], [`Sampler`], [`Queue`] and [`Event`] own their OpenCL objects and release them.
//!
//! Source: the OpenCL 3.0 API specification, and `cl_intel_unified_shared_memory` for pointers as arguments.

mod api;
mod clang;
mod device;
mod error;
mod event;
mod find;
mod image;
mod kernel;
mod owned;
mod program;
mod queue;
#[cfg(target_os = "linux")]
pub mod quiesce;
#[cfg(windows)]
#[path = "quiesce_absent.rs"]
pub mod quiesce;
mod runtime;
mod sampler;
mod target;

pub use clang::translate;
pub use device::{ImageLimits, Properties};
pub use error::Error;
pub use event::{Event, Observer};
pub use find::VARIABLE as LIBRARY_VARIABLE;
pub use image::{Image, ImageKind, ImageLayout};
pub use kernel::{Kernel, KernelInfo, Range, Value};
pub use program::{Program, Unit};
pub use queue::Queue;
pub use quiesce::Call;
pub use runtime::Runtime;
pub use sampler::Sampler;
pub use target::name_instruction_set;
