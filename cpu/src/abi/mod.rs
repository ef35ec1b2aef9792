//! The C side of the API: result codes and the description of the last error, checks on arguments, extensible structures.

pub mod arguments;
pub mod result;
