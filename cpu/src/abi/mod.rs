//! The C ABI: result codes and the description of the last error, checked arguments, extensible structures, strictness.

pub mod arguments;
pub mod result;
pub mod strictness;
