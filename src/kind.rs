//! The three kinds of USM, as a value and as types.

use std::fmt;

use level_zero_sys as sys;

/// The kind of an allocation: where it resides, and whether the host can access it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UsmKind {
    /// Resides on the host; every device of the context can access it.
    Host,
    /// Resides on one device; the host cannot access it.
    Device,
    /// Migrates between the host and a device.
    Shared,
}

impl UsmKind {
    /// SYCL's name: `host`, `device` or `shared`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Device => "device",
            Self::Shared => "shared",
        }
    }

    /// Whether the host can access such memory.
    #[must_use]
    pub const fn is_host_accessible(self) -> bool {
        !matches!(self, Self::Device)
    }

    pub(crate) fn from_level_zero(kind: sys::ze_memory_type_t) -> Option<Self> {
        match kind {
            sys::ZE_MEMORY_TYPE_HOST | sys::extensions::ZE_MEMORY_TYPE_HOST_IMPORTED => {
                Some(Self::Host)
            }
            sys::ZE_MEMORY_TYPE_DEVICE => Some(Self::Device),
            sys::ZE_MEMORY_TYPE_SHARED => Some(Self::Shared),
            _ => None,
        }
    }
}

impl fmt::Display for UsmKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A kind of USM as a type parameter of [`Memory`](super::Memory).
pub trait Kind: sealed::Sealed + Send + Sync + 'static {
    /// The same kind as a value.
    const KIND: UsmKind;
}

/// The kinds that the host can access.
pub trait HostAccessible: Kind {}

macro_rules! kind {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Debug)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Kind for $name {
            const KIND: UsmKind = UsmKind::$name;
        }
    };
}

kind! {
    /// [`UsmKind::Host`] as a type.
    Host
}
kind! {
    /// [`UsmKind::Device`] as a type.
    Device
}
kind! {
    /// [`UsmKind::Shared`] as a type.
    Shared
}

impl HostAccessible for Host {}
impl HostAccessible for Shared {}
