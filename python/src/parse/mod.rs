//! Conversion of Python arguments to Rust types: numbers, shapes, types, host buffers, and the interfaces of arrays.
//! This layer does not use contexts, devices or memory objects.

pub(crate) mod dtype;
mod host_buffer;
pub(crate) mod index;
pub(crate) mod interface;
mod numbers;
pub(crate) mod shape;
mod usm_kind;

pub(crate) use host_buffer::HostBuffer;
pub(crate) use numbers::{
    BoolOrInt, address, alignment, dlpack_device, dlpack_version, integer_or, is_integral,
    is_number, number, offset, size,
};
pub(crate) use usm_kind::{class_suffix, kind_number, usm_kind};
