//! What can go wrong, said so that the reader knows what was asked of whom and what the answer was.

use std::path::PathBuf;

use level_zero_sys as sys;

use crate::kind::UsmKind;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every failure of this crate.
///
/// Result codes are those of the Level Zero specification, "Core API", `ze_result_t`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A Level Zero library or one of its functions cannot be had.
    #[error(transparent)]
    Load(#[from] sys::LoadError),
    /// The CPU runtime, a shared library of this package, is not where it should be.
    #[error(
        "the CPU runtime of zeusm was not found; looked for {}: reinstall zeusm, or name the library in {variable}",
        paths(.tried)
    )]
    CpuRuntimeMissing {
        /// Every path that was tried.
        tried: Vec<PathBuf>,
        /// The environment variable that can name it.
        variable: &'static str,
    },
    /// The runtime was asked for in words that mean none.
    #[error("{variable}={value:?} is neither auto, system, cpu nor the absolute path of a library")]
    Choice {
        /// The environment variable or function that was used.
        variable: &'static str,
        /// What it said.
        value: String,
    },
    /// The runtime that was asked for cannot serve.
    #[error(
        "the runtime {choice}, asked for by {variable} or by the program, cannot serve: {cause}"
    )]
    Chosen {
        /// What was asked for.
        choice: String,
        /// The environment variable that can ask.
        variable: &'static str,
        /// Why it cannot serve.
        cause: Box<Error>,
    },
    /// Another runtime was chosen after one had begun to serve.
    #[error(
        "the {serving} Level Zero runtime already serves this process: choose before the first use"
    )]
    AlreadyServing {
        /// The library that serves.
        serving: String,
    },
    /// The runtime has no device that can be used.
    #[error("{library} has no GPU device: {reason}")]
    NoDevice {
        /// The library that was asked.
        library: String,
        /// Why there is none.
        reason: String,
    },
    /// A fork's child used a driver that works in its parent only.
    #[error(
        "{function} was not called: this process was forked from one that uses the Level Zero driver, which does not work \
         in a child; start processes by spawn or forkserver, or fork before the first use of zeusm"
    )]
    Forked {
        /// The function.
        function: &'static str,
    },
    /// A device of one driver was named with a context of another.
    #[error(
        "{device} is a device of another driver than the context: make the context of the device's driver"
    )]
    OtherDriver {
        /// The device's name.
        device: String,
    },
    /// An operation was given memory of another context than its queue's.
    #[error(
        "{operation}: the {size} bytes of {kind} USM belong to another context than the queue: make the queue in the \
         memory's context"
    )]
    OtherContext {
        /// The operation.
        operation: &'static str,
        /// The kind of memory.
        kind: UsmKind,
        /// Its size in bytes.
        size: usize,
    },
    /// An operation was given memory on a device that its queue's device has no access to.
    #[error(
        "{operation}: the {size} bytes of {kind} USM are on {memory_device}, which the queue's device, {device}, cannot \
         access"
    )]
    OutOfReach {
        /// The operation.
        operation: &'static str,
        /// The kind of memory.
        kind: UsmKind,
        /// Its size in bytes.
        size: usize,
        /// The queue's device.
        device: String,
        /// The memory's device.
        memory_device: String,
    },
    /// A device handle of another Level Zero library of this process, of a SYCL runtime's for instance.
    #[error(
        "two Level Zero libraries are in this process: zeusm uses {}, the SYCL runtime uses {}. Memory of one is unknown \
         to the other; have both use one: import zeusm before dpctl, with {variable} unset or naming that library",
        .ours.display(),
        other(.theirs.as_ref())
    )]
    OtherRuntime {
        /// The library that serves zeusm.
        ours: PathBuf,
        /// The one that the SYCL runtime uses, if it can be told.
        theirs: Option<PathBuf>,
        /// The environment variable that chooses zeusm's.
        variable: &'static str,
    },
    /// A Level Zero function answered with an error.
    #[error("{function} answered {}", code(.result))]
    Call {
        /// The function.
        function: &'static str,
        /// Its answer.
        result: sys::ze_result_t,
    },
    /// Memory could not be allocated.
    #[error(
        "cannot allocate {size} bytes of {kind} USM (alignment {alignment}) on {device}, whose largest allocation \
         is {limit} bytes: {cause}"
    )]
    Allocation {
        /// The kind of memory.
        kind: UsmKind,
        /// How many bytes were asked for.
        size: usize,
        /// The alignment that was asked for, in bytes; 0 leaves it to the runtime.
        alignment: usize,
        /// The device's name.
        device: String,
        /// The device's largest allocation in bytes.
        limit: u64,
        /// What Level Zero answered.
        cause: Box<Error>,
    },
    /// Neither the machine nor the device can hold so much. The driver was not asked; this is the result that it has for it.
    #[error("{size} bytes are more than the {of}, {limit} bytes: ZE_RESULT_ERROR_UNSUPPORTED_SIZE")]
    TooLarge {
        /// How many bytes were asked for.
        size: usize,
        /// How many there can be.
        limit: u64,
        /// What they would be of.
        of: &'static str,
    },
    /// A pool could not allocate, whatever it gave back.
    #[error(
        "the pool, with {used_bytes} bytes in use of {total_bytes} held{}, cannot give {size} bytes: {cause}",
        limited(.limit)
    )]
    Pool {
        /// How many bytes were asked for.
        size: usize,
        /// The bytes of blocks in use.
        used_bytes: usize,
        /// The bytes that the pool holds from its provider.
        total_bytes: usize,
        /// The most that may be.
        limit: Option<usize>,
        /// What the provider, the limit or the failure callback answered.
        cause: Box<Error>,
    },
    /// A pool may not hold so much.
    #[error(
        "{size} bytes more than the {held} held would exceed the pool's limit of {limit} bytes"
    )]
    PoolLimit {
        /// How many bytes were to be added.
        size: usize,
        /// How many there are.
        held: usize,
        /// The most there may be.
        limit: usize,
    },
    /// A function that a user gave failed.
    #[error("the failure callback failed: {0}")]
    Callback(Box<dyn std::error::Error + Send + Sync>),
    /// An alignment that is neither 0 nor a power of two, or beyond the limit.
    #[error("alignment must be 0 or a power of two of at most {limit} bytes, not {alignment}")]
    Alignment {
        /// The alignment that was asked for, in bytes.
        alignment: usize,
        /// The largest alignment in bytes.
        limit: usize,
    },
    /// A copy or fill failed.
    #[error("{operation} of {size} bytes on {device} failed: {cause}")]
    Operation {
        /// What was to be done.
        operation: &'static str,
        /// How many bytes it was to touch.
        size: usize,
        /// The device's name.
        device: String,
        /// What Level Zero answered.
        cause: Box<Error>,
    },
    /// The host must not look at memory of a kind that it may look at otherwise.
    #[error("the host cannot access {size} bytes of {kind} USM on {device}: {reason}")]
    HostAccess {
        /// The kind of memory.
        kind: UsmKind,
        /// How many bytes there are.
        size: usize,
        /// The device's name.
        device: String,
        /// Why it must not.
        reason: &'static str,
    },
    /// The two sides of a copy differ in length.
    #[error("{operation}: the source has {source_size} bytes, the destination {destination_size}")]
    Length {
        /// What was to be done.
        operation: &'static str,
        /// The source's length in bytes.
        source_size: usize,
        /// The destination's length in bytes.
        destination_size: usize,
    },
    /// A null pointer where there is memory to touch.
    #[error("a null pointer is no memory to copy or fill (ZE_RESULT_ERROR_INVALID_NULL_POINTER)")]
    NullPointer,
    /// A pointer that is not USM of the context it is said to belong to.
    #[error("pointer {pointer:#x} is not a USM allocation of this Level Zero context")]
    UnknownPointer {
        /// The address.
        pointer: usize,
    },
}

impl Error {
    /// The Level Zero result at the bottom of this error, when there is one.
    #[must_use]
    pub fn result(&self) -> Option<sys::ze_result_t> {
        match self {
            Self::Call { result, .. } => Some(*result),
            Self::NullPointer => Some(sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER),
            Self::TooLarge { .. } => Some(sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE),
            Self::Allocation { cause, .. }
            | Self::Operation { cause, .. }
            | Self::Pool { cause, .. } => cause.result(),
            _ => None,
        }
    }
}

/// A result code as the specification spells it, and as a number when the headers do not know it.
fn code(result: &sys::ze_result_t) -> String {
    result
        .name()
        .map_or_else(|| format!("result {:#x}", result.0), str::to_owned)
}

fn limited(limit: &Option<usize>) -> String {
    limit.map_or_else(String::new, |limit| {
        format!(" (at most {limit} may be held)")
    })
}

fn other(theirs: Option<&PathBuf>) -> String {
    theirs.map_or_else(|| "another".to_owned(), |path| path.display().to_string())
}

fn paths(tried: &[PathBuf]) -> String {
    let each: Vec<String> = tried
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    each.join(", ")
}
