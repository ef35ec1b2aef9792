//! The pools of this process: memory that is free in one is memory that an allocation elsewhere lacks.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use zeusm_process::{Owned, Registry};

use super::chunks::RETURN_TIMEOUT;
use super::inner::Inner;
use super::provider::Provider;
use crate::error::{Error, Result};

/// A pool of any provider.
trait FreeMemory: Send + Sync {
    /// Returns all free memory to the provider.
    fn free_all_blocks(&self);

    /// Waits until what other threads are returning or moving is free, with a timeout.
    fn finish_transfers(&self, timeout: Duration);
}

impl<P: Provider> FreeMemory for Owned<Inner<P>> {
    fn free_all_blocks(&self) {
        self.trim(0);
    }

    fn finish_transfers(&self, timeout: Duration) {
        self.chunks.finish_transfers(timeout);
    }
}

static POOLS: Registry<dyn FreeMemory> = Registry::new();

pub(super) fn register<P: Provider>(pool: &Arc<Owned<Inner<P>>>) {
    let pool: Weak<Owned<Inner<P>>> = Arc::downgrade(pool);
    POOLS.register(pool);
}

/// Attempts an allocation, and once more if the host or the device is out of memory, after all pools of the process have
/// returned their free memory, including what other threads are returning. It is not tested whether they had any: another
/// thread may have returned it meanwhile.
pub(crate) fn retry_out_of_memory<T>(attempt: impl Fn() -> Result<T>) -> Result<T> {
    retry_if(Error::is_out_of_memory, attempt)
}

/// The same, if `is_short` says so of the error: of a resource that free memory may hold.
pub(crate) fn retry_if<T, E>(
    is_short: impl Fn(&E) -> bool,
    attempt: impl Fn() -> Result<T, E>,
) -> Result<T, E> {
    attempt().or_else(|cause| {
        if !is_short(&cause) {
            return Err(cause);
        }
        let pools = POOLS.objects();
        pools.iter().for_each(|pool| pool.free_all_blocks());
        // One timeout for all.
        let end = Instant::now() + RETURN_TIMEOUT;
        for pool in &pools {
            pool.finish_transfers(end.saturating_duration_since(Instant::now()));
        }
        drop(pools);
        attempt()
    })
}
