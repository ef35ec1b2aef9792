//! Arrays: views of a memory object with a type, a shape and strides, without arithmetic.
//!
//! Each file uses those before it only:
//!
//! - `class`: the array; `properties`, `buffer`, `operators`: what needs nothing else;
//! - `adopt`: the array or the memory of any object that has USM; `interface`: `__sycl_usm_array_interface__`;
//! - `host`: copies from and to NumPy;
//! - `plan`: what array a call asks for; `make`: the makers that execute a plan;
//! - `create`, `dlpack_export`, `dlpack_import`, `dlpack_exchange`, `arrow`, `views`, `assign`, `pickling`, `scalar`: functions and methods.

pub(crate) mod adopt;
mod arrow;
mod assign;
mod buffer;
mod class;
mod create;
mod dlpack_exchange;
mod dlpack_export;
mod dlpack_import;
mod host;
mod interface;
mod make;
mod operators;
mod pickling;
mod plan;
mod properties;
mod scalar;
mod stack;
mod views;

pub(crate) use arrow::from_arrow;
pub(crate) use class::UsmArray;
pub(crate) use create::{asarray, empty};
pub(crate) use dlpack_import::from_dlpack;
pub(crate) use interface::{as_usm_array, from_sycl_usm_array_interface, shared_queue};
