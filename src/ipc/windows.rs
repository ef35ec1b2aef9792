//! Memory and events between processes are for Linux, where descriptors are sent over sockets. The names are here, too, so that
//! programs compile on both; every function that would make or open a handle returns [`Error::LinuxOnly`].

use std::convert::Infallible;
use std::ffi::c_void;
use std::ops::Range;
use std::time::Duration;

use crate::context::Context;
use crate::device::{Device, Driver};
use crate::event::Event;
use crate::queue::RawQueue;
use crate::usm::{Allocation, Kind, Memory, UsmKind};

/// Why memory or an event cannot be exported, or a handle cannot be opened: on Windows always [`Error::LinuxOnly`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system is not Linux.
    #[error("memory and events can be shared between processes on Linux only")]
    LinuxOnly,
    /// As on Linux.
    #[error("bytes {start} to {end} are not inside the allocation of {size} bytes")]
    Range {
        /// First byte.
        start: usize,
        /// End.
        end: usize,
        /// The allocation's size in bytes.
        size: usize,
    },
    /// As on Linux.
    #[error("{0}")]
    NothingToShare(&'static str),
    /// As on Linux.
    #[error("a signal has interrupted the wait for an answer of process {0}")]
    Interrupted(u32),
    /// Level Zero returned an error.
    #[error(transparent)]
    LevelZero(#[from] crate::error::Error),
}

/// The longest wait for another process's answer.
pub const ANSWER_TIMEOUT: Duration = Duration::ZERO;

/// A handle of memory, which cannot be made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcHandle(Infallible);

/// A handle of an event, which cannot be made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcEventHandle(Infallible);

/// An export, which cannot be made here.
#[derive(Debug)]
pub struct Export(Infallible);

/// Another process's memory, which cannot be opened here.
#[derive(Clone, Debug)]
pub struct Mapping(Infallible);

/// Whether memory can be exported.
///
/// # Errors
/// None.
pub fn is_supported(_driver: &Driver) -> crate::Result<bool> {
    Ok(false)
}

/// Whether events can be exported.
///
/// # Errors
/// None.
pub fn are_events_supported(_driver: &Driver) -> crate::Result<bool> {
    Ok(false)
}

/// Whether addresses are of a [`Mapping`].
#[must_use]
pub fn is_mapped(_range: &Range<usize>) -> bool {
    false
}

/// What has no value has no properties either.
macro_rules! properties {
    ($class:ident: $($(#[$documentation:meta])* $name:ident -> $type:ty;)*) => {
        impl $class {
            $($(#[$documentation])*
            #[must_use]
            pub fn $name(&self) -> $type {
                match self.0 {}
            })*
        }
    };
}

properties! { IpcHandle:
    /// As on Linux.
    size -> usize;
    /// As on Linux.
    offset -> usize;
    /// As on Linux.
    kind -> UsmKind;
    /// As on Linux.
    allocation_id -> u64;
    /// As on Linux.
    device_uuid -> [u8; 16];
    /// As on Linux.
    process -> u32;
    /// As on Linux.
    to_bytes -> Vec<u8>;
}

properties! { IpcEventHandle:
    /// As on Linux.
    device_uuid -> [u8; 16];
    /// As on Linux.
    process -> u32;
    /// As on Linux.
    to_bytes -> Vec<u8>;
}

properties! { Mapping:
    /// As on Linux.
    as_ptr -> *mut c_void;
    /// As on Linux.
    size -> usize;
    /// As on Linux.
    kind -> UsmKind;
    /// As on Linux.
    exported_kind -> UsmKind;
    /// As on Linux.
    context -> &Context;
    /// As on Linux.
    device -> &Device;
}

impl IpcHandle {
    /// The length of a handle in bytes.
    pub const LENGTH: usize = 192;

    /// # Errors
    /// [`Error::LinuxOnly`]
    pub fn new(_allocation: &Allocation, _range: Range<usize>) -> Result<Self, Error> {
        Err(Error::LinuxOnly)
    }

    /// # Errors
    /// [`Error::LinuxOnly`]
    pub fn of_foreign(
        _context: &Context,
        _device: &Device,
        _range: Range<usize>,
    ) -> Result<(Self, Export), Error> {
        Err(Error::LinuxOnly)
    }

    /// # Errors
    /// [`Error::LinuxOnly`]
    pub fn of_memory<K: Kind>(
        _memory: &mut Memory<K>,
        _range: Range<usize>,
    ) -> Result<Self, Error> {
        Err(Error::LinuxOnly)
    }

    /// # Errors
    /// [`Error::LinuxOnly`]
    pub fn from_bytes(_bytes: &[u8]) -> Result<Self, Error> {
        Err(Error::LinuxOnly)
    }

    /// # Errors
    /// None, as there is no handle.
    pub fn open(&self, _context: &Context, _device: &Device) -> Result<Mapping, Error> {
        match self.0 {}
    }
}

impl IpcEventHandle {
    /// # Errors
    /// [`Error::LinuxOnly`]
    pub fn new(_queue: &RawQueue, _event: &Event) -> Result<Self, Error> {
        Err(Error::LinuxOnly)
    }

    /// # Errors
    /// [`Error::LinuxOnly`]
    pub fn from_bytes(_bytes: &[u8]) -> Result<Self, Error> {
        Err(Error::LinuxOnly)
    }

    /// # Errors
    /// None, as there is no handle.
    pub fn open(&self, _queue: &RawQueue) -> Result<Event, Error> {
        match self.0 {}
    }
}
