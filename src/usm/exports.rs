//! State that a layer above attaches to allocations: their exports to other processes. Few allocations have any, so it is not
//! in the allocation itself, of which there may be millions.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use zeusm_process::{Local, Mutex};

pub(super) type Export = Arc<dyn Any + Send + Sync>;

/// By the allocation's address. A fork's child has none.
static EXPORTS: Local<Mutex<HashMap<usize, Export>>> = Local::new();

/// The export of the allocation at `address`.
pub(super) fn get(address: usize) -> Option<Export> {
    EXPORTS.get()?.lock().get(&address).cloned()
}

/// Adds an export, unless there is one already; returns the one that there is.
#[cfg(target_os = "linux")] // As `Allocation::export`.
pub(super) fn insert(address: usize, export: Export) -> Export {
    let mut exports = EXPORTS.get_or_default().lock();
    let there = Arc::clone(
        exports
            .entry(address)
            .or_insert_with(|| Arc::clone(&export)),
    );
    // Outside the lock, as the drop of `export` may call the driver.
    drop(exports);
    there
}

/// Removes the export of an allocation that is about to be freed.
#[cold]
pub(super) fn remove(address: usize) {
    let removed = EXPORTS
        .get()
        .and_then(|exports| exports.lock().remove(&address));
    // Outside the lock, as its drop calls the driver.
    drop(removed);
}
