//! The errors of copies to and from CUDA memory.

use crate::suai;

/// Why an array in CUDA memory cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The version of the interface is not supported.
    #[error("'version' is {0}; versions 0 to 3 are supported")]
    Version(i64),
    /// The stream is not valid.
    #[error(
        "'stream' is {0}; it must be None, 1 for the legacy default stream, 2 for the per-thread default stream, or a \
         stream's handle"
    )]
    Stream(i64),
    /// A field is inconsistent.
    #[error(transparent)]
    Field(#[from] suai::Error),
    /// The driver library cannot be opened, or lacks a function.
    #[error("memory of CUDA cannot be copied without its driver library: {0}")]
    Library(String),
    /// The pointer is unknown to CUDA.
    #[error("the pointer {pointer:#x} is in no memory of CUDA ({cause})")]
    Pointer {
        /// The pointer.
        pointer: usize,
        /// CUDA's answer.
        cause: Box<Error>,
    },
    /// A function of the driver library failed.
    #[error("{function} failed: {name} ({code})")]
    Call {
        /// The function.
        function: &'static str,
        /// The name of the result.
        name: String,
        /// The result.
        code: i32,
    },
    /// The USM side of the copy failed.
    #[error(transparent)]
    LevelZero(Box<crate::error::Error>),
}

impl From<crate::error::Error> for Error {
    fn from(error: crate::error::Error) -> Self {
        Self::LevelZero(Box::new(error))
    }
}
