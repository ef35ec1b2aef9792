//! The errors of this crate: each has the operation, its arguments and the result.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

use level_zero_sys as sys;
use zeusm_process::Bytes;
use zeusm_process::memory::Bound;
use zeusm_process::variables::InvalidVariable;

use crate::history::Holder;
use crate::kind::UsmKind;

/// The result of every fallible call of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every failure of this crate.
///
/// Result codes are those of the Level Zero specification, "Core API", `ze_result_t`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A Level Zero library cannot be opened, or lacks a function.
    #[error(transparent)]
    Load(#[from] sys::LoadError),
    /// The CPU runtime, a shared library of this package, was not found.
    #[error(
        "the CPU runtime of zeusm was not found; looked for {}: a Rust program needs the feature `cpu` of the crate `zeusm`, a \
         Python package a new installation; {variable} names the library elsewhere",
        paths(.tried)
    )]
    CpuRuntimeMissing {
        /// The paths that were tried.
        tried: Vec<PathBuf>,
        /// The environment variable that can name it.
        variable: &'static str,
    },
    /// A part of zeusm that other systems than Linux do not have.
    #[error("{0} of zeusm is for Linux only")]
    LinuxOnly(&'static str),
    /// An environment variable, or the program's choice in its place, has a value that cannot be used.
    #[error(transparent)]
    InvalidVariable(#[from] InvalidVariable),
    /// The chosen runtime cannot be used.
    #[error("the runtime {choice}, chosen by {variable}, cannot be used: {cause}")]
    ChoiceFailed {
        /// The choice.
        choice: String,
        /// The environment variable for the choice.
        variable: &'static str,
        /// Why it cannot be used.
        cause: Box<Error>,
    },
    /// The devices of the CPU runtime were chosen after they had been listed.
    #[error(
        "the devices of the CPU runtime have been listed already and cannot be changed: choose them before the first use of \
         a device, and before SYCL lists them, which the import of dpctl does"
    )]
    DevicesListed,
    /// The devices of the CPU runtime were chosen, but another one is in use.
    #[error(
        "{} is in use, which is not the CPU runtime: its devices cannot be chosen",
        .0.display()
    )]
    NotCpuRuntime(PathBuf),
    /// The CPU runtime cannot present these devices.
    #[error("{0}")]
    InvalidCpuDevices(String),
    /// The runtime has no usable device.
    #[error("{library} has no usable device: {reason}")]
    NoDevice {
        /// The library.
        library: String,
        /// The reason.
        reason: String,
    },
    /// A fork's child called a driver that works in its parent only.
    #[error(
        "{0} was not called: this process was forked from one that uses the Level Zero driver, which does not work \
         in a child; start processes by spawn, or by forkserver if the main module does not import zeusm before its guard, \
         or fork before the import of zeusm"
    )]
    Forked(&'static str),
    /// The timestamps of an operation of a fork's parent.
    #[error(
        "the operation was submitted before this process was forked: only its parent can read the timestamps"
    )]
    TimestampsOfParent,
    /// The timestamps of another process's operation.
    #[error("the operation is another process's: only that process can read the timestamps")]
    TimestampsOfOther,
    /// Another process's operation has failed, or that process has ended before the operation was complete: the event that was
    /// opened of it, and what waited for that, have this error.
    #[error(
        "process {0} has ended before its operation was complete, or the operation has failed there: what waited for it may \
         have used unfinished data"
    )]
    ProducerFailed(u32),
    /// The device belongs to another driver than the context.
    #[error(
        "{0} is a device of another driver than the context: make the context of the device's driver"
    )]
    OtherDriver(String),
    /// The memory of an operation belongs to another context than its queue.
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
    /// The memory of an operation is on a device that the queue's device cannot access.
    #[error(
        "{operation}: the {size} bytes of {kind} USM are on {memory_device}, which the queue's device, {device}, cannot \
         access"
    )]
    NoPeerAccess {
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
    /// A device handle belongs to another Level Zero library of this process, for instance that of a SYCL runtime.
    #[error(
        "two Level Zero libraries are in this process: zeusm uses {}, the SYCL runtime uses {}. Memory of one is unknown \
         to the other; both have to use one library: import zeusm before dpctl, with {variable} unset or naming that library",
        .ours.display(),
        other(.theirs.as_ref())
    )]
    OtherRuntime {
        /// The library that zeusm uses.
        ours: PathBuf,
        /// The library that the SYCL runtime uses, if known.
        theirs: Option<PathBuf>,
        /// The environment variable that chooses zeusm's library.
        variable: &'static str,
    },
    /// A Level Zero function returned an error.
    #[error("{function} returned {}", code(.result))]
    Call {
        /// The function.
        function: &'static str,
        /// Its result.
        result: sys::ze_result_t,
    },
    /// Memory could not be allocated.
    #[error(
        "cannot allocate {} of {kind} USM{} on {device}\n  {cause}{}{}",
        bytes(.size),
        aligned(.alignment),
        lines(.bounds),
        lines(&self.remedy())
    )]
    Allocation {
        /// The kind of memory.
        kind: UsmKind,
        /// The requested size in bytes.
        size: usize,
        /// The requested alignment in bytes; 0 leaves it to the runtime.
        alignment: usize,
        /// The device's name.
        device: String,
        /// Where Level Zero is out of memory: what limits the memory and has the least free, and what else has less free than the size.
        bounds: Box<[Bound]>,
        /// The stacks whose blocks have the most bytes on the device, or in the pool whose limit it is, if a
        /// [history](crate::history) is recorded. Their numbers mean something to the caller that named them only, so the message
        /// does not contain them.
        holders: Box<[Holder]>,
        /// The error of Level Zero or of the pool.
        cause: Box<Error>,
    },
    /// The size is more than the machine or the device has. The driver was not called; the result is the one for this case.
    #[error("{} are more than the {of}, {}: ZE_RESULT_ERROR_UNSUPPORTED_SIZE", bytes(.size), Bytes(*.limit))]
    TooLarge {
        /// The requested size in bytes.
        size: usize,
        /// The available size in bytes.
        limit: u64,
        /// The kind of memory that is limited.
        of: &'static str,
    },
    /// This process would hold more of the device's memory than the device has, or than the limit that was set. The driver was not
    /// called; the result is the one for this case.
    #[error(
        "{} more exceed the {of}, {}, of which this process holds {}: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        Bytes(*.size),
        Bytes(*.limit),
        Bytes(*.held)
    )]
    DeviceLimit {
        /// The size in bytes.
        size: u64,
        /// What is limited.
        of: &'static str,
        /// The limit in bytes.
        limit: u64,
        /// What the process holds, in bytes.
        held: u64,
    },
    /// The device has less free memory, whichever processes hold the rest. The driver was not called; the result is the one for this
    /// case.
    #[error(
        "{} more exceed what is free of the device's memory, {}; this process holds {}: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        Bytes(*.size),
        Bytes(*.free),
        Bytes(*.held)
    )]
    DeviceFull {
        /// The size in bytes.
        size: u64,
        /// What is free, in bytes.
        free: u64,
        /// What the process holds, in bytes.
        held: u64,
    },
    /// The process has almost as many memory mappings as the system allows. The driver, which does not check them, was not
    /// called; the result is the one for this case.
    #[error(
        "the process has {used} memory mappings, and the system allows {limit} (vm.max_map_count): \
         ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY"
    )]
    TooManyMappings {
        /// The mappings of the process.
        used: usize,
        /// The system's limit.
        limit: usize,
    },
    /// Memory of the program cannot be host memory where it is.
    #[error(
        "{size} bytes at {address:#x} cannot be used in place as host USM on {device}: {cause}; copy them to new memory \
         (MemoryUSMHost(n).copy_from_host)"
    )]
    InPlace {
        /// The size in bytes.
        size: usize,
        /// The address of the first byte.
        address: usize,
        /// The device's name.
        device: String,
        /// Why it cannot.
        cause: Box<Error>,
    },
    /// The driver does not have an extension.
    #[error("the driver does not have the extension {0}")]
    NoExtension(&'static str),
    /// The driver would hand pages of the program out after their free.
    #[error(
        "the driver keeps memory for reuse that was freed, also the program's, and would hand its pages out as new memory; with \
         NEOReadDebugKeys=1 and ExperimentalEnableHostAllocationCache=0 in the environment it keeps none"
    )]
    KeepsPages,
    /// Pages of the program are USM already.
    #[error("a page of them is USM already, or is in use in place for other bytes")]
    PagesInUse,
    /// The memory of a pool that is suspended cannot be used.
    #[error(
        "the memory's pool is suspended, or about to be: it can be used after pool.resume() in the process that suspended it"
    )]
    Suspended,
    /// A pool that was not made for it cannot be suspended.
    #[error(
        "the pool cannot be suspended: its provider has no virtual memory (MemoryPool('device', suspendable=True))"
    )]
    NotSuspendable,
    /// The driver does not report how much of a device's memory is free.
    #[error("the driver does not report the free memory of {device}: {reason}")]
    NoMemoryState {
        /// The device's name.
        device: String,
        /// What the driver answered.
        reason: String,
    },
    /// A pool could not allocate, even after it returned its free memory to the provider.
    #[error(
        "the pool holds {}, of which {} are in use{}: it cannot allocate {}\n  {cause}",
        bytes(.total_bytes),
        bytes(.used_bytes),
        limited(.limit),
        bytes(.size)
    )]
    Pool {
        /// The requested size in bytes.
        size: usize,
        /// The bytes of blocks in use.
        used_bytes: usize,
        /// The bytes that the pool holds from its provider.
        total_bytes: usize,
        /// The pool's limit on `total_bytes`.
        limit: Option<usize>,
        /// The error of the provider, the limit or the failure callback.
        cause: Box<Error>,
    },
    /// The pool's limit does not allow so many bytes.
    #[error(
        "{} more than the {} held would exceed {}",
        bytes(.size),
        bytes(.held),
        exceeded(*.limit)
    )]
    PoolLimit {
        /// The bytes to add.
        size: usize,
        /// The bytes that the pool holds.
        held: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The user's failure callback failed.
    #[error("the failure callback failed: {0}")]
    Callback(Box<dyn std::error::Error + Send + Sync>),
    /// An alignment that is neither 0 nor a power of two, or above the limit.
    #[error("alignment must be 0 or a power of two of at most {limit} bytes, not {alignment}")]
    Alignment {
        /// The requested alignment in bytes.
        alignment: usize,
        /// The largest alignment in bytes.
        limit: usize,
    },
    /// A device is lost: it executes no operations of this process any more.
    #[error("{0} is lost ({code})", code = code(&sys::ZE_RESULT_ERROR_DEVICE_LOST))]
    DeviceLost(String),
    /// A copy or fill failed.
    #[error("{operation} of {size} bytes on {device} failed: {cause}")]
    Operation {
        /// The operation.
        operation: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The device's name.
        device: String,
        /// The error of Level Zero.
        cause: Box<Error>,
    },
    /// No command list for copies and fills could be made.
    #[error("a command list for copies on {device} cannot be made: {cause}")]
    CommandList {
        /// The device's name.
        device: String,
        /// The error of Level Zero.
        cause: Box<Error>,
    },
    /// The operation was accepted, and not executed: a host task that it waited for, or an operation before it, has failed, or
    /// the driver refused it when it could be submitted. A host task that has failed has this error, too.
    #[error("an operation that waited for the host was not executed: {0}")]
    NotExecuted(Arc<Error>),
    /// A host task has panicked.
    #[error("a host task has panicked")]
    Panicked,
    /// No thread could be started for an operation or a host task that waits for the host. Nothing was submitted.
    #[error("no thread can be started for work that waits for the host: {}{}", .0, Bound::behind(.0))]
    NoThread(io::Error),
    /// The host must not access the memory, although its kind is host-accessible.
    #[error("the host cannot access {size} bytes of {kind} USM on {device}: {reason}")]
    HostAccess {
        /// The kind of memory.
        kind: UsmKind,
        /// Its size in bytes.
        size: usize,
        /// The device's name.
        device: String,
        /// The reason.
        reason: &'static str,
    },
    /// The two sides of a copy differ in length.
    #[error("{operation}: the source has {source_size} bytes, the destination {destination_size}")]
    Length {
        /// The operation.
        operation: &'static str,
        /// The source's length in bytes.
        source_size: usize,
        /// The destination's length in bytes.
        destination_size: usize,
    },
    /// A null pointer with a size above 0.
    #[error("a null pointer cannot be copied or filled (ZE_RESULT_ERROR_INVALID_NULL_POINTER)")]
    NullPointer,
    /// The pointer is not USM of the context.
    #[error("pointer {0:#x} is not a USM allocation of this Level Zero context")]
    UnknownPointer(usize),
}

impl Error {
    /// The Level Zero result at the root of this error, if there is one.
    #[must_use]
    pub fn result(&self) -> Option<sys::ze_result_t> {
        match self {
            Self::Call { result, .. } => Some(*result),
            Self::DeviceLost { .. } => Some(sys::ZE_RESULT_ERROR_DEVICE_LOST),
            Self::NullPointer => Some(sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER),
            Self::TooLarge { .. } => Some(sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE),
            Self::DeviceLimit { .. } | Self::DeviceFull { .. } => {
                Some(sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)
            }
            Self::TooManyMappings { .. } => Some(sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY),
            Self::Allocation { cause, .. }
            | Self::Operation { cause, .. }
            | Self::CommandList { cause, .. }
            | Self::InPlace { cause, .. }
            | Self::Pool { cause, .. } => cause.result(),
            Self::NotExecuted(cause) => cause.result(),
            _ => None,
        }
    }

    /// Whether another process is the reason: [`ProducerFailed`](Self::ProducerFailed), also as the cause of this error.
    #[must_use]
    pub fn is_of_producer(&self) -> bool {
        match self {
            Self::ProducerFailed(_) => true,
            Self::Operation { cause, .. } => cause.is_of_producer(),
            Self::NotExecuted(cause) => cause.is_of_producer(),
            _ => false,
        }
    }

    /// Why memory could not be allocated, below what the pools say.
    pub(crate) fn root(&self) -> &Self {
        match self {
            Self::Allocation { cause, .. } | Self::Pool { cause, .. } => cause.root(),
            _ => self,
        }
    }

    /// What to do about memory that could not be allocated, which is the last line of the message.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        if let Self::Allocation { size, bounds, .. } = self
            && let Some(bound) = bounds.first().filter(|it| it.is_set)
        {
            return Some(match bound.limit < *size as u64 {
                true => "work in smaller parts, or raise that limit",
                false => "free memory, or raise that limit",
            });
        }
        match self.root() {
            Self::TooLarge { .. } => {
                Some("work in smaller parts: no free of memory makes room for so much")
            }
            Self::DeviceLimit { size, limit, .. } if size > limit => {
                Some("work in smaller parts, or choose another limit")
            }
            Self::DeviceLimit { .. } => Some("free memory, or choose another limit"),
            Self::DeviceFull { .. } => {
                Some("free memory, or end other processes that use the device")
            }
            Self::PoolLimit { size, limit, .. } if size > limit => {
                Some("work in smaller parts, or give the pool a higher limit")
            }
            Self::PoolLimit { .. } => Some("free blocks of the pool, or give it a higher limit"),
            Self::TooManyMappings { .. } => Some("free memory, or raise vm.max_map_count"),
            root if root.is_out_of_memory() => Some("free memory, or end other processes"),
            _ => None,
        }
    }

    /// Whether the host or the device is out of memory.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        let results = [
            sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
            sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
        ];
        self.result()
            .is_some_and(|result| results.contains(&result))
    }
}

/// The specification's name of a result code, or its number when the headers do not declare it.
fn code(result: &sys::ze_result_t) -> String {
    result
        .name()
        .map_or_else(|| format!("result {:#x}", result.0), str::to_owned)
}

/// Each on a line of its own, behind what the message begins with.
fn lines<'a, T: fmt::Display + 'a>(items: impl IntoIterator<Item = &'a T>) -> String {
    items
        .into_iter()
        .map(|item| format!("\n  {item}"))
        .collect()
}

fn bytes(size: &usize) -> Bytes {
    Bytes(*size as u64)
}

/// Zero leaves it to the runtime.
fn aligned(alignment: &usize) -> String {
    match alignment {
        0 => String::new(),
        alignment => format!(" (alignment {alignment})"),
    }
}

fn limited(limit: &Option<usize>) -> String {
    limit.map_or_else(String::new, |limit| {
        format!(", and may hold {}", bytes(&limit))
    })
}

/// A pool without a limit of its own has the address space's.
fn exceeded(limit: usize) -> String {
    match limit {
        usize::MAX => "what can be addressed".to_owned(),
        limit => format!("the pool's limit of {}", bytes(&limit)),
    }
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
