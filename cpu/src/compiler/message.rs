//! The protocol between client and compiler: each message is its length in 8 bytes, little-endian, and its fields as postcard
//! encodes them.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
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

impl Task {
    /// How much there is to compile, in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Build(job) => job.iter().map(|unit| unit.code.len()).sum(),
            Self::Translate(source, _) => source.len(),
        }
    }

    /// The same without optimisation.
    pub fn without_optimisation(&mut self) {
        let off = |options: &mut String| options.push_str(" -cl-opt-disable");
        match self {
            Self::Build(job) => job.iter_mut().for_each(|unit| off(&mut unit.options)),
            Self::Translate(_, options) => off(options),
        }
    }
}

/// The failure of a build.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The compiler reported an error.
    #[error("{0}")]
    Refused(String),
    /// The compiler crashed.
    #[error("the compiler did not survive this module: {0}")]
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

/// Sends a message.
///
/// # Errors
/// The other end's.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(&bytes)
}

/// Receives a message of [`send`].
///
/// # Errors
/// The other end's, and that of a message which is no `T`.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    // The buffer grows with the bytes received, so a length alone allocates nothing.
    let mut bytes = Vec::new();
    from.take(u64::from_le_bytes(length))
        .read_to_end(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}
