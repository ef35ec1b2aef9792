//! Arrays: views of a memory object with a type, a shape and strides, without arithmetic.

mod buffer;
mod class;
mod create;
mod dlpack_export;
mod dlpack_import;
mod host;
mod interface;
mod memory;
mod pointer;
mod properties;

pub(crate) use class::UsmArray;
pub(crate) use create::{asarray, empty};
pub(crate) use dlpack_import::from_dlpack;
pub(crate) use interface::{as_usm_array, from_sycl_usm_array_interface};
pub(crate) use pointer::{PyPointerAttributes, pointer_attributes};
