//! The pools of this process: memory that is free in one is memory that an allocation elsewhere lacks.

use std::sync::{Arc, Weak};

use super::inner::Inner;
use super::provider::Provider;
use crate::error::Result;
use crate::process::{Owned, Registry};

/// A pool of any provider.
trait FreeMemory: Send + Sync {
    /// Returns all free memory to the provider.
    fn free_all_blocks(&self);
}

impl<P: Provider> FreeMemory for Owned<Inner<P>> {
    fn free_all_blocks(&self) {
        self.trim(0);
    }
}

static POOLS: Registry<dyn FreeMemory> = Registry::new();

pub(super) fn register<P: Provider>(pool: &Arc<Owned<Inner<P>>>) {
    let pool: Weak<Owned<Inner<P>>> = Arc::downgrade(pool);
    POOLS.register(pool);
}

/// Attempts an allocation, and once more if the host or the device is out of memory, after all pools of the process have
/// returned their free memory. It is not tested whether they had any: another thread may have returned it meanwhile.
pub(crate) fn retry_out_of_memory<T>(attempt: impl Fn() -> Result<T>) -> Result<T> {
    attempt().or_else(|cause| {
        if !cause.is_out_of_memory() {
            return Err(cause);
        }
        for pool in POOLS.objects() {
            pool.free_all_blocks();
        }
        attempt()
    })
}
