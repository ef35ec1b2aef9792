//! No quiescence of the OpenCL runtime: Windows has no forks, and its exit ends all other threads first.

use std::sync::Once;

use super::Error;

/// Guard of a call to the runtime.
pub struct Call;

impl Call {
    /// Begins a call.
    ///
    /// # Errors
    /// None.
    pub fn begin() -> Result<Self, Error> {
        Ok(Self)
    }

    /// The call of the runtime that reports the end of a launch.
    pub fn at_end_of_launch() -> Self {
        Self
    }
}

/// `Ok`: kernels can run in this process.
///
/// # Errors
/// None.
pub fn expect_usable() -> Result<(), Error> {
    Ok(())
}

/// Whether the runtime has no workers: it has.
pub fn has_no_workers() -> bool {
    false
}

/// A launch is in flight.
pub fn launch_begins() {}

/// A launch ends without a report.
pub fn launch_is_lost() {}

/// Nothing is to be done at the exit.
pub fn prepare_for_exit(_: &Once) {}
