//! What the compiler is asked for, and what it answers.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::opencl::Unit;

/// A module to build: one unit, or several to be linked.
pub type Job = Vec<Unit>;

/// What the compiler is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// The device's own code of a module.
    Build(Job),
    /// The SPIR-V of OpenCL C: the source, and OpenCL's build options.
    Translate(String, String),
}

/// The failure of a build.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The compiler reported an error.
    #[error("{0}")]
    Refused(String),
    /// The compiler crashed.
    #[error(
        "the compiler did not survive this module, or reached its limit, ZEUSM_COMPILER_SECONDS: {0}"
    )]
    Crashed(String),
    /// The program did not wait for it.
    #[error("Ctrl-C ended the wait for the build of a module")]
    Interrupted,
    /// There is no compiler, or it cannot be started.
    #[error("{0}")]
    Unavailable(String),
}

/// What the compiler answers: the code, or why there is none.
pub type Outcome = Result<Vec<u8>, Failure>;
