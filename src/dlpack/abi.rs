//! The C structures and constants of DLPack 1.3.

use std::ffi::{c_char, c_int, c_void};

pub use crate::suai::DlpackType as DataType;

/// The version of the structures here; a consumer may use any minor version of the same major one.
pub const VERSION: Version = Version { major: 1, minor: 3 };

/// `DLPACK_FLAG_BITMASK_READ_ONLY`: the consumer must not write.
pub const FLAG_READ_ONLY: u64 = 1 << 0;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`: the memory is a copy for the consumer alone.
pub const FLAG_IS_COPIED: u64 = 1 << 1;
/// `DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED`: each number of fewer than 8 bits has a byte of its own.
pub const FLAG_IS_PADDED: u64 = 1 << 2;

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
    /// In elements. Null for row-major without gaps, before DLPack 1.2 also where there are dimensions.
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

/// `SetError` of an allocator: the caller's context, the kind of the error, and its message.
pub type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// `DLPackExchangeAPI`: the functions by which C code exchanges the objects of a Python class. Each but the allocator returns 0,
/// or -1 with a Python exception set.
#[repr(C)]
#[derive(Debug)]
pub struct ExchangeApi {
    /// The version of the table.
    pub version: Version,
    /// The table of an earlier major version; may be null.
    pub previous: *const c_void,
    /// Makes a tensor like the prototype, whose data is not read; calls `SetError` before it returns -1.
    pub allocate:
        unsafe extern "C" fn(*mut Tensor, *mut *mut Versioned, *mut c_void, SetError) -> c_int,
    /// Exports a Python object.
    pub from_object: unsafe extern "C" fn(*mut c_void, *mut *mut Versioned) -> c_int,
    /// Makes a Python object of a tensor, whose ownership it takes.
    pub to_object: unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> c_int,
    /// Describes a Python object, which stays the owner of shape and strides.
    pub describe: unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int,
    /// The queue that the consumer submits its work to, by the type and the number of the device.
    pub work_stream: unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int,
}

// SAFETY: the functions may be called by any thread, and a table of an earlier version is constant.
unsafe impl Sync for ExchangeApi {}
