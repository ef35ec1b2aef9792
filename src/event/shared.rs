//! What events and queues need of an event that processes share.

use std::fmt::Debug;

use level_zero_sys as sys;

use crate::error::Result;

/// The completion of an operation of one process, which others have opened. It may fail, also by the hand of one of these: a
/// process that dies signals nothing. The failure is set before the signal, so that who sees the signal sees the failure.
pub(crate) trait Shared: Debug + Send + Sync {
    /// Signalled at the end of the operation, for devices to wait for.
    fn done(&self) -> sys::ze_event_handle_t;

    /// Signals it from the host.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with Level Zero's result.
    #[cfg(target_os = "linux")]
    fn signal(&self) -> Result<()>;

    /// Signals it from the host; with a failure, unless it was signalled before.
    #[cfg(target_os = "linux")]
    fn fail(&self);

    /// Checks that it has not failed.
    ///
    /// # Errors
    /// [`Error::ProducerFailed`](crate::Error::ProducerFailed).
    fn check(&self) -> Result<()>;

    /// Whether it is signalled, without a failure.
    fn has_succeeded(&self) -> bool;
}
