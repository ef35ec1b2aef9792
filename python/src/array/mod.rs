//! Arrays: a type, a shape and strides over a memory object. They are views, and compute nothing.

mod blocks;
mod buffer;
mod class;
mod create;
mod device;
mod dtype;
mod exchange;
mod give;
mod host;
mod index;
mod memory;
mod pointer;
mod properties;
mod shape;
mod take;

pub(super) use class::UsmArray;
pub(super) use create::{asarray, empty};
pub(super) use device::Root;
pub(super) use exchange::{as_usm_array, from_sycl_usm_array_interface};
pub(super) use pointer::{PyPointerAttributes, pointer_attributes};
pub(super) use take::from_dlpack;
