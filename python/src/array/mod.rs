//! Arrays: views of a memory object with a type, a shape and strides, without arithmetic.
//!
//! `class` and `properties` define the array, `fields` selects fields of records, `create` makes new arrays. `host`, `assign`,
//! `scalar`, `buffer` and `pickling` exchange elements with the host; `interface`, `dlpack_export`, `dlpack_import` and `cuda`
//! exchange arrays with other packages.

mod assign;
mod buffer;
mod class;
mod create;
mod cuda;
mod dlpack_export;
mod dlpack_import;
mod fields;
mod host;
mod interface;
mod memory;
mod pickling;
mod pointer;
mod properties;
mod scalar;

pub(crate) use class::UsmArray;
pub(crate) use create::{asarray, empty};
pub(crate) use dlpack_import::from_dlpack;
pub(crate) use interface::{as_usm_array, from_sycl_usm_array_interface, shared_queue};
pub(crate) use pickling::array_from_pickle;
pub(crate) use pointer::{PyPointerAttributes, pointer_attributes};
