//! DLPack: the exchange of arrays between packages as C structures with a deleter.
//!
//! A [`Tensor`] describes an array, [`Exportable`] has its numbers for consumers, [`export`] makes the structure for one, and
//! [`Managed`] owns an imported structure, which [`Managed::tensor`] reads. Of Python's capsules around the structures, only the [names](Form)
//! are here.
//!
//! Source: DLPack 1.3, the header `dlpack.h` (the structures and constants in [`abi`]), and "Python Specification for
//! DLPack" (the capsules' names, and the rules for calling the deleter).

pub mod abi;
mod error;
mod export;
mod import;
mod tensor;

pub use error::Error;
pub use export::{Exportable, export, release};
pub use import::Managed;
pub use tensor::{Device, Form, Tensor};

#[cfg(test)]
mod tests;
