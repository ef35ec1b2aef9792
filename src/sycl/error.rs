//! What can go wrong between this crate and SYCL.

use std::path::PathBuf;

use super::Backend;

/// Why SYCL cannot be used, or what it answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// dpctl's library is not in the process.
    #[error(
        "libDPCTLSyclInterface is not in this process{}: install dpctl (pip install dpctl) and import it first",
        beside(.sycl.as_ref())
    )]
    NoDpctl {
        /// A SYCL runtime that is there nevertheless.
        sycl: Option<PathBuf>,
    },
    /// dpctl's library lacks a function.
    #[error("{} has no function {name}: dpctl 0.17 or newer is needed", .library.display())]
    Symbol {
        /// The function's name.
        name: &'static str,
        /// The library of dpctl that was asked.
        library: PathBuf,
    },
    /// Something cannot be done with this SYCL runtime; everything else can.
    #[error("there is no {purpose}: {reason}")]
    Unavailable {
        /// What cannot be done.
        purpose: &'static str,
        /// Why.
        reason: String,
    },
    /// SYCL threw an exception.
    #[error("{function} failed: {text}")]
    Thrown {
        /// The function's name.
        function: &'static str,
        /// The exception's text.
        text: String,
    },
    /// A null reference was given.
    #[error("the reference to a {object} is null")]
    NullReference {
        /// What it should refer to.
        object: &'static str,
    },
    /// A function answered with nothing. dpctl says why on standard error when `DPCTL_VERBOSITY=error` is set.
    #[error("{function} failed (DPCTL_VERBOSITY=error in the environment makes dpctl say why)")]
    Failed {
        /// The function's name.
        function: &'static str,
    },
    /// The object belongs to another backend than the one that is needed.
    #[error("this {object} is of the backend {found}, but {needed} is needed")]
    Backend {
        /// What was asked.
        object: &'static str,
        /// The backend it has.
        found: Backend,
        /// The backend it should have.
        needed: Backend,
    },
    /// The filter string selects no device.
    #[error("SYCL has no device that the filter string {filter:?} selects")]
    NoSuchDevice {
        /// The filter string.
        filter: String,
    },
    /// There is no device at all.
    #[error("SYCL has no device at all")]
    NoDevice,
    /// A device that another one contains, where only devices of their own can be named.
    #[error("the SYCL device {name} is part of another one, and has no filter string")]
    SubDevice {
        /// The device's name.
        name: String,
    },
}

fn beside(sycl: Option<&PathBuf>) -> String {
    sycl.map_or_else(String::new, |path| {
        format!(" (a SYCL runtime is, {})", path.display())
    })
}
