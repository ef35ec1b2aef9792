//! The pools of this process: memory that is free in one is memory that an allocation elsewhere lacks.

use std::sync::{Arc, Weak};

use crate::process::{Local, Mutex};

/// A pool of any provider.
pub(super) trait FreeMemory: Send + Sync {
    /// Returns all free memory to the provider; returns the number of bytes.
    fn free_all_blocks(&self) -> usize;
}

static POOLS: Local<Mutex<Vec<Weak<dyn FreeMemory>>>> = Local::new();

/// Adds a pool, which is removed after its drop.
pub(super) fn register(pool: Weak<dyn FreeMemory>) {
    let mut pools = POOLS.get_or_default().lock();
    pools.retain(|pool| pool.strong_count() > 0);
    pools.push(pool);
}

/// Returns the free memory of all pools of this process to their providers; returns the number of bytes.
pub fn free_all_blocks() -> usize {
    let Some(pools) = POOLS.get() else {
        return 0;
    };
    // Without the lock, as the last reference to a pool may be dropped here, and with it a context.
    let pools: Vec<Arc<_>> = pools.lock().iter().filter_map(Weak::upgrade).collect();
    pools.iter().map(|pool| pool.free_all_blocks()).sum()
}
