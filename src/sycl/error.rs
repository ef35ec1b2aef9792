//! The errors of the SYCL layer.

use std::path::PathBuf;

use super::backend::Backend;
use super::platform::names::INTERFACE;

/// Why SYCL cannot be used, or which call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// dpctl's library is not in the process.
    #[error(
        "{INTERFACE} is not in this process{}: install dpctl (pip install dpctl) and import it first",
        beside(.0.as_ref())
    )]
    NoDpctl(Option<PathBuf>),
    /// dpctl's library lacks a function.
    #[error("{} has no function {name}: dpctl 0.17 or newer is needed", .library.display())]
    Symbol {
        /// The function's name.
        name: &'static str,
        /// dpctl's library.
        library: PathBuf,
    },
    /// This SYCL runtime lacks one feature.
    #[error("there is no {purpose}: {reason}")]
    Unavailable {
        /// The missing feature.
        purpose: &'static str,
        /// The reason.
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
    #[error("the reference to a {0} is null")]
    NullReference(&'static str),
    /// A function returned null. dpctl prints the reason to standard error if `DPCTL_VERBOSITY=error` is set.
    #[error("{0} failed (with DPCTL_VERBOSITY=error in the environment, dpctl prints the reason)")]
    Failed(&'static str),
    /// The object belongs to another backend than the required one.
    #[error("this {object} is of the backend {found}, but {needed} is needed")]
    Backend {
        /// The class of the object.
        object: &'static str,
        /// Its backend.
        found: Backend,
        /// The required backend.
        needed: Backend,
    },
}

fn beside(sycl: Option<&PathBuf>) -> String {
    sycl.map_or_else(String::new, |path| {
        format!(" (a SYCL runtime is, {})", path.display())
    })
}
