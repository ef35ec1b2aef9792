//! The C structures and constants of DLPack 1.0.

use std::ffi::c_void;

pub use crate::suai::DlpackType as DataType;

/// The version of the structures here; a consumer may use any minor version of the same major one.
pub const VERSION: Version = Version { major: 1, minor: 0 };

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the consumer must not write.
pub const FLAG_READ_ONLY: u64 = 1 << 0;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`: the memory is a copy for the consumer alone.
pub const FLAG_IS_COPIED: u64 = 1 << 1;

/// `kDLCPU`: memory of the host.
pub const CPU: i32 = 1;
/// `kDLOneAPI`: USM in the default context of a root device of SYCL.
pub const ONEAPI: i32 = 14;

/// `DLPackVersion`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Another major version has another layout after the flags.
    pub major: u32,
    /// A newer minor version has more constants.
    pub minor: u32,
}

/// `DLDevice`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// `DLDeviceType`: [`CPU`], [`ONEAPI`] or another.
    pub kind: i32,
    /// The number of the device among those of its type.
    pub id: i32,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Tensor {
    /// The address that `byte_offset` is relative to; may be null without elements.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: Device,
    /// The length of `shape` and `strides`.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DataType,
    /// The dimensions.
    pub shape: *mut i64,
    /// In elements; null for row-major without gaps.
    pub strides: *mut i64,
    /// The offset from `data` to the element with all indices 0.
    pub byte_offset: u64,
}

/// `DLManagedTensor`, the structure without a version.
#[repr(C)]
#[derive(Debug)]
pub struct Unversioned {
    /// The array.
    pub tensor: Tensor,
    /// Opaque data of the producer.
    pub context: *mut c_void,
    /// Frees the structure; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`. The fields up to `flags` are the same in every version.
#[repr(C)]
#[derive(Debug)]
pub struct Versioned {
    /// The version of this structure.
    pub version: Version,
    /// Opaque data of the producer.
    pub context: *mut c_void,
    /// Frees the structure; may be null.
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    /// [`FLAG_READ_ONLY`], [`FLAG_IS_COPIED`].
    pub flags: u64,
    /// The array.
    pub tensor: Tensor,
}
