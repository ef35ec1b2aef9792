//! Arrow: the exchange of one-dimensional arrays of numbers by Apache Arrow's C structures.
//!
//! [`Schema::of`] and [`DeviceArray::export`] describe an array for consumers. [`DeviceArray::to_dlpack`] moves a foreign one to
//! DLPack's structure, so that there is one way to import; both count devices alike.
//!
//! Source: Apache Arrow, "The Arrow C data interface" and "The Arrow C Device data interface".

mod abi;
mod export;
mod format;
mod import;

pub use abi::{DeviceArray, Schema};
pub use format::Error;

#[cfg(test)]
mod tests;
