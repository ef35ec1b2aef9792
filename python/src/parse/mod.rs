//! Conversion of Python arguments to Rust types: numbers, shapes, types, host buffers, and `__sycl_usm_array_interface__`.
//! This layer does not use contexts, devices or memory objects.

pub(crate) mod cuda;
mod dictionary;
pub(crate) mod dlpack;
pub(crate) mod dtype;
mod host_buffer;
pub(crate) mod index;
pub(crate) mod interface;
mod numbers;
pub(crate) mod pickle;
pub(crate) mod record;
pub(crate) mod shape;
mod shown;
mod usm_kind;

pub(crate) use host_buffer::HostBuffer;
pub(crate) use numbers::{BoolOrInt, address, alignment, is_integral, number, offset, size};
pub(crate) use shown::Shown;
pub(crate) use usm_kind::{class_suffix, kind_number, usm_kind};
