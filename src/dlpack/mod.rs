//! DLPack: arrays handed from one package to another as C structures with a deleter.
//!
//! [`Tensor`] says what an array is, [`export`](Tensor::export) makes the structure that a consumer gets, and
//! [`Managed`] is a structure that came from elsewhere: read with [`Managed::tensor`], given back when dropped. Python's
//! capsules around the structures are none of this module's business, only their [names](Form).
//!
//! Source: DLPack 1.0, the header `dlpack.h` (the structures and constants in [`abi`]), and "Python Specification for
//! DLPack" (the capsules' names, who calls the deleter when).

pub mod abi;
mod error;
mod export;
mod import;
mod tensor;

pub use error::Error;
pub use export::release;
pub use import::Managed;
pub use tensor::{Device, Form, Tensor};

#[cfg(test)]
mod tests;
