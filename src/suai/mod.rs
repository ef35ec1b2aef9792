//! `__sycl_usm_array_interface__` as data, and its validation.
//!
//! The Python layer reads the dictionary into [`Fields`]; [`Interface::read`] converts them to an [`Interface`] with
//! consistent shape, strides and offset, or to an [`Error`] that names the field and the value. This module does not access
//! memory: [`Layout::check_within`] compares the array with the allocation that Level Zero reports for the pointer.
//!
//! Sources:
//! - dpctl, "`__sycl_usm_array_interface__` attribute" (the fields; strides and offset count elements),
//! - Numba, "CUDA Array Interface (Version 2)" (a zero-size array has pointer 0; `descr`),
//! - NumPy, "The array interface protocol" (`typestr`, `descr`).
//!
//! ```
//! use zeusm::suai::{Fields, Interface};
//!
//! let interface = Interface::read(&Fields {
//!     version: Some(1),
//!     pointer: Some(0x1000),
//!     typestr: Some("<f4".to_owned()),
//!     shape: Some(vec![3, 4]),
//!     strides: Some(vec![-4, 1]),
//!     offset: Some(8),
//!     ..Fields::default()
//! })?;
//! assert_eq!(interface.layout.extent(), 0..48);
//! let layout = &interface.layout;
//! layout.check_within(interface.pointer, 0x1000..0x1030)?;
//! assert!(layout.check_within(interface.pointer, 0x1000..0x102f).is_err());
//! # Ok::<(), zeusm::suai::Error>(())
//! ```

mod error;
mod interface;
mod item;
mod layout;
mod record;
mod regions;
mod view;

pub use error::{Error, MAX_DEPTH, MAX_FIELDS, MAX_NDIM, VERSION};
pub use interface::{Fields, Interface};
pub use item::{ByteOrder, DlpackType, ItemType, Kind};
pub use layout::Layout;
pub use record::{ElementType, Record, RecordField};
pub use regions::{Region, Regions};
pub use view::{Index, Order, ViewError};

#[cfg(test)]
pub(crate) mod tests;
