//! Copies to and from CUDA memory, which is no USM: in chunks, through host memory, by the driver library `libcuda`,
//! which is opened at the first copy.
//!
//! [`Interface`] is the validated `__cuda_array_interface__` of an array; [`read()`] and [`write()`] copy its elements.
//!
//! Sources: Numba, "CUDA Array Interface (Version 3)"; NVIDIA, "CUDA Driver API".

mod chunks;
mod copy;
mod error;
mod interface;
mod library;
mod session;

pub use copy::{read, write};
pub use error::Error;
pub use interface::{Interface, Order};

#[cfg(test)]
mod tests;
