//! Linux: private mappings, and memory files for what is shared.

pub mod error;
pub mod exports;
pub mod mapping;
mod memory_file;
mod room;
mod share;

pub use memory_file::{has_memory_files, is_memory_file, memory_file, own_memory_file, reopen};
pub use share::can_be_exported;
