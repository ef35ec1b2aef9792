//! Windows: private memory. Processes share none.

pub mod error;
pub mod exports;
pub mod mapping;

/// Whether new memory of this process can be exported: never.
pub fn can_be_exported() -> bool {
    false
}

/// Whether the system has memory files: not yet.
pub fn has_memory_files() -> bool {
    false
}
