//! The loss of a device: how it is detected, and recorded for the process.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use level_zero_sys as sys;

use super::properties::Device;
use crate::confinement::has_driver;
use crate::error::{Error, Result};

/// How often a device that may be lost is asked for its status, and the pause between two queries.
const STATUS_QUERIES: u32 = 5;
const BETWEEN_QUERIES: Duration = Duration::from_millis(2);

/// The interval between two queries for callers that poll, in milliseconds.
const POLL_INTERVAL: u64 = 100;

impl Device {
    /// Asks the driver whether the device is lost, which is permanent, and records it for [`Self::check_not_lost`]. If the
    /// driver does not support the query, the device counts as not lost.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn check_alive(&self) -> Result<()> {
        self.check_not_lost()?;
        self.check_status().inspect_err(|_| {
            // Confirmed by another query, as the flag is never reset.
            if repeatedly(|| self.check_status()).is_err() {
                self.0.loss.known.store(true, Ordering::Relaxed);
            }
        })
    }

    /// As [`check_alive`](Self::check_alive), but asks the driver at most every 100 ms, for callers that poll.
    ///
    /// # Errors
    /// As [`check_alive`](Self::check_alive).
    pub(crate) fn check_alive_at_times(&self) -> Result<()> {
        let now = u64::try_from(self.0.loss.made.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now < self.0.loss.asked.load(Ordering::Relaxed) + POLL_INTERVAL {
            return self.check_not_lost();
        }
        self.0.loss.asked.store(now, Ordering::Relaxed);
        self.check_alive()
    }

    /// As [`check_alive`](Self::check_alive), where an error may have been caused by a loss: asks several times, as Intel's
    /// driver leaves the lost engine out of some queries.
    ///
    /// # Errors
    /// As [`check_alive`](Self::check_alive).
    pub fn check_alive_after_error(&self) -> Result<()> {
        repeatedly(|| self.check_alive())
    }

    /// Returns no other errors than that of a lost device.
    fn check_status(&self) -> Result<()> {
        // SAFETY: the device is alive.
        let answer = unsafe { call!(self.driver().library(), zeDeviceGetStatus(self.handle())) };
        match answer.map_err(|error| error.result()) {
            Err(Some(sys::ZE_RESULT_ERROR_DEVICE_LOST)) => Err(self.loss()),
            _ => Ok(()),
        }
    }

    /// Checks that the device is not known to be lost.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn check_not_lost(&self) -> Result<()> {
        if !self.0.loss.known.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(self.loss())
    }

    fn loss(&self) -> Error {
        Error::DeviceLost(self.to_string())
    }

    /// Checks that the host may access shared memory. The bytes may be in a device's own memory, and Intel's driver aborts the
    /// process when it cannot migrate them: after the loss of the device, and in a fork's child.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]; [`Error::Forked`].
    #[inline]
    pub fn check_shared_memory(&self) -> Result<()> {
        if self.migrates_shared_memory() {
            self.check_migration()
        } else {
            Ok(())
        }
    }

    fn check_migration(&self) -> Result<()> {
        if !has_driver() {
            return Err(Error::Forked("the migration of shared memory"));
        }
        self.check_not_lost()
    }
}

/// Repeats a query of the status until it fails.
fn repeatedly(query: impl Fn() -> Result<()>) -> Result<()> {
    for _ in 1..STATUS_QUERIES {
        query()?;
        thread::sleep(BETWEEN_QUERIES);
    }
    query()
}
