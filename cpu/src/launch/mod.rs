//! Launches: the operations that execute kernels.

mod append;
mod captured;
mod indirect;
mod mutable;
mod native;
mod operation;

pub use append::{append, append_cooperative, append_with_arguments, append_with_parameters};
pub use captured::Launch;
pub use indirect::{append_indirect, append_multiple_indirect};
pub use mutable::{update, update_kernels};
