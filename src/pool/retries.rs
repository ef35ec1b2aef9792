//! The attempts of an allocation for which memory is short.

use std::time::Instant;

use super::chunks::RETURN_TIMEOUT;
use super::failure::Failure;
use super::inner::{Inner, NewBlock};
use super::provider::Provider;
use super::registry::retry_out_of_memory;
use crate::error::{Error, Result};

/// The calls of a failure callback in a row that request another attempt although the pool's bytes in use are no fewer than
/// ever during this allocation: memory of another pool was freed, or another thread has allocated it. More are a callback's
/// mistake.
const FRUITLESS_CALLS: usize = 16;

/// The attempts, each after a trim. Between the two, another thread may free a block, whose slab the pool then holds, and allocate
/// one of another size, so that the next trim returns what this allocation lacked.
const ATTEMPTS: usize = 16;

impl<P: Provider> Inner<P> {
    /// Attempts an allocation first as usual, then with a minimal refill after free memory was returned to the provider, and
    /// again in that way as long as the failure callback requests it.
    pub(super) fn with_retries(
        &self,
        size: usize,
        alignment: usize,
        attempt: impl Fn(bool) -> Result<NewBlock>,
    ) -> Result<NewBlock> {
        if let Ok(new) = attempt(false) {
            return Ok(new);
        }
        let after_trim = || self.after_trim(size, &attempt);
        let failure = || self.failure(size, alignment);
        let answer = after_trim().or_else(|error| {
            if !self.chunks.allows(size) {
                // No free memory would help.
                return Err(error);
            }
            self.with_callback(error, failure, after_trim)
        });
        answer.map_err(|cause| {
            let failure = failure();
            Error::Pool {
                size,
                used_bytes: failure.used_bytes,
                total_bytes: failure.total_bytes,
                limit: failure.limit,
                cause: Box::new(cause),
            }
        })
    }

    /// Attempts an allocation after free memory was returned to the provider, and again while that can be what it lacked.
    fn after_trim(
        &self,
        size: usize,
        attempt: &impl Fn(bool) -> Result<NewBlock>,
    ) -> Result<NewBlock> {
        let _shortage = self.begin_shortage();
        let (mut attempts, begun) = (0, Instant::now());
        loop {
            let trimmed = self.trim(0);
            // What other threads are moving or returning is missing until then.
            self.chunks.finish_transfers(RETURN_TIMEOUT);
            let error = match retry_out_of_memory(|| attempt(true)) {
                Ok(new) => return Ok(new),
                Err(error) => error,
            };
            attempts += 1;
            let is_short = match error {
                Error::PoolLimit { .. } => {
                    let used_bytes = self.statistics().used_bytes;
                    self.chunks.allows(used_bytes.saturating_add(size))
                }
                _ => error.is_out_of_memory() && trimmed > 0,
            };
            // The calls of the provider that another thread makes may wait for this allocation.
            if !is_short || attempts == ATTEMPTS || begun.elapsed() >= RETURN_TIMEOUT {
                return Err(error);
            }
        }
    }

    /// Attempts an allocation after each call of the failure callback that requests it. One call may not suffice: it may free
    /// less than is needed, or another thread may allocate the memory first.
    fn with_callback(
        &self,
        mut error: Error,
        failure: impl Fn() -> Failure,
        attempt: impl Fn() -> Result<NewBlock>,
    ) -> Result<NewBlock> {
        let (mut fruitless, mut fewest) = (0, usize::MAX);
        while fruitless < FRUITLESS_CALLS {
            let failed = failure();
            fewest = fewest.min(failed.used_bytes);
            if !self.callback.call(failed)? {
                break;
            }
            // Fewer than at the last call could be those that another thread has in use at some times only.
            let used_bytes = self.statistics().used_bytes;
            fruitless = if used_bytes < fewest {
                0
            } else {
                fruitless + 1
            };
            fewest = fewest.min(used_bytes);
            // Blocks that the callback freed may be cached.
            match attempt() {
                Ok(new) => return Ok(new),
                Err(again) => error = again,
            }
        }
        Err(error)
    }

    fn failure(&self, size: usize, alignment: usize) -> Failure {
        let statistics = self.statistics();
        Failure {
            size,
            alignment,
            used_bytes: statistics.used_bytes,
            total_bytes: statistics.total_bytes,
            limit: statistics.limit,
        }
    }
}
