//! The C ABI: result codes and the description of the last error, checked arguments and what bodies take of them, extensible
//! structures, strictness.

pub mod arguments;
pub mod entry;
pub mod result;
pub mod strictness;
