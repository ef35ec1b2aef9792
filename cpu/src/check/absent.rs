//! No checker: it needs Linux's signals. What the rest of the runtime would tell it is dropped.

use std::any::Any;
use std::sync::Arc;

mod properties;
mod uses;

pub use properties::Properties;
pub use uses::{Place, Uses, Wait};

/// The inaccessible bytes on each side of an allocation that is watched.
pub const GUARD: usize = 64 << 10;

/// Whether the checker is on: never.
#[inline]
pub const fn is_on() -> bool {
    false
}

/// The checker's environment variables.
pub mod settings {
    use std::env;

    use zeusm_process::variables::{InvalidVariable, parse};

    /// `Ok` unless the environment asks for the checker.
    ///
    /// # Errors
    /// For a value that does.
    pub fn read() -> Result<(), InvalidVariable> {
        let expected = || "0, and the checker is for Linux only".to_owned();
        let is_off = |value: &str| matches!(value, "" | "0").then_some(());
        parse(env::var_os, "ZEUSM_CHECK", expected, is_off).map(drop)
    }
}

/// An allocation that is watched: there is none.
#[derive(Debug)]
pub enum Watch {}

impl Watch {
    /// The allocation is exported.
    pub fn release(&self) {}

    /// A command that uses it is complete.
    pub fn unpin(&self) {}
}

/// The calling thread executes device code until this is dropped.
pub struct DeviceCode;

impl DeviceCode {
    /// Begins.
    pub fn begin() -> Self {
        Self
    }
}

impl Drop for DeviceCode {
    fn drop(&mut self) {}
}

/// Turns the checker on, if the environment asks for it: it does not.
pub fn begin() {}

/// Watches a new allocation.
pub fn watch(_: Properties) -> Option<Arc<Watch>> {
    None
}

/// Knows a new allocation in pages of the program or of another process.
pub fn know(_: Properties) -> Option<Arc<Watch>> {
    None
}

/// The pages of a freed allocation: there is no quarantine.
pub fn exhume(_: impl FnOnce(&Properties) -> bool) -> Option<Box<dyn Any + Send + Sync>> {
    None
}

/// An allocation that was watched is gone.
pub fn bury(_: &Arc<Watch>, _: Box<dyn Any + Send + Sync>) {}

/// A command uses an allocation.
pub fn pin(_: &Arc<Watch>) {}

/// The program frees an allocation.
pub fn freeing(_: &Watch, _: bool) {}

/// The program frees an address that no allocation has.
pub fn invalid_free(_: usize) {}

/// Whether a command is given memory that the program must not use.
pub fn is_bad_range(_: usize, _: usize) -> bool {
    false
}

/// A command was given memory that has been freed since.
pub fn freed_since(_: usize) {}

/// A kernel is about to be in flight.
pub fn kernel_begins() {}

/// The kernel in flight is about to access these places.
pub fn kernel_accesses(_: impl Iterator<Item = usize>) {}

/// A kernel has ended.
pub fn kernel_ends() {}

/// A command uses memory of another context.
pub fn foreign_context(_: &Watch, _: u64) {}

/// The host signals an event.
pub fn host_signals(_: usize, _: impl FnOnce()) {}

/// The host resets an event.
pub fn host_resets(_: usize, _: bool) {}

/// The host has waited for a signal.
pub fn waited_for_signal(_: usize) {}

/// The host has waited for a stream.
pub fn waited_for_stream(_: usize) {}

/// A command is submitted.
pub fn submit(
    _: Place,
    _: impl Iterator<Item = Wait>,
    _: impl FnOnce() -> Option<usize>,
    _: impl FnOnce() -> Uses,
) {
}

/// Bytes are about to be copied.
///
/// # Safety
/// None is needed.
#[inline]
pub unsafe fn copying(_: usize, _: usize, _: usize) {}
