//! The validated description of an array in DLPack's terms.

use std::ffi::CStr;
use std::fmt;
use std::{ptr, slice};

use super::{Error, abi};
use crate::suai::{ItemType, Layout, MAX_NDIM};

/// The device of a tensor's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The host.
    Cpu,
    /// The SYCL device with this position among all root devices of the process.
    OneApi(i32),
    /// A device of any other type.
    Other(abi::Device),
}

impl From<abi::Device> for Device {
    fn from(device: abi::Device) -> Self {
        match device.kind {
            abi::CPU => Self::Cpu,
            abi::ONEAPI => Self::OneApi(device.id),
            _ => Self::Other(device),
        }
    }
}

impl From<Device> for abi::Device {
    fn from(device: Device) -> Self {
        let (kind, id) = match device {
            Device::Cpu => (abi::CPU, 0),
            Device::OneApi(id) => (abi::ONEAPI, id),
            Device::Other(other) => (other.kind, other.id),
        };
        Self { kind, id }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = abi::Device::from(*self);
        let name = match device.kind {
            abi::CPU => "kDLCPU",
            2 => "kDLCUDA",
            3 => "kDLCUDAHost",
            4 => "kDLOpenCL",
            7 => "kDLVulkan",
            8 => "kDLMetal",
            10 => "kDLROCM",
            11 => "kDLROCMHost",
            13 => "kDLCUDAManaged",
            abi::ONEAPI => "kDLOneAPI",
            other => return write!(formatter, "({other}, {})", device.id),
        };
        write!(formatter, "({name}, {})", device.id)
    }
}

/// The two forms of the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// With version and flags ([`abi::Versioned`]).
    Versioned,
    /// Without version and flags ([`abi::Unversioned`]); it cannot mark memory as read-only.
    Unversioned,
}

impl Form {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Versioned, Self::Unversioned];

    /// The name of an unused Python capsule.
    #[must_use]
    pub const fn name(self) -> &'static CStr {
        match self {
            Self::Versioned => c"dltensor_versioned",
            Self::Unversioned => c"dltensor",
        }
    }

    /// The name of a capsule whose structure a consumer owns.
    #[must_use]
    pub const fn used_name(self) -> &'static CStr {
        match self {
            Self::Versioned => c"used_dltensor_versioned",
            Self::Unversioned => c"used_dltensor",
        }
    }
}

/// The consistent description of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The address that the layout's offset is relative to; 0 only without elements.
    pub pointer: usize,
    /// The device of the memory.
    pub device: Device,
    /// The type of the items.
    pub item: ItemType,
    /// Shape, strides and offset.
    pub layout: Layout,
    /// Whether writing is forbidden.
    pub read_only: bool,
    /// Whether the memory is a copy for the consumer alone.
    pub copied: bool,
}

impl Tensor {
    /// The tensor that an allocator is asked for: row-major, whatever the data and the strides of the prototype are.
    ///
    /// # Errors
    /// [`Error`], which names the field and the value.
    ///
    /// # Safety
    /// `shape` must be null or point to `ndim` integers.
    pub unsafe fn of_prototype(raw: &abi::Tensor) -> Result<Self, Error> {
        let without_data = abi::Tensor {
            data: ptr::without_provenance_mut(1),
            strides: ptr::null_mut(),
            byte_offset: 0,
            ..*raw
        };
        // SAFETY: the caller guarantees the shape, and the strides are null.
        unsafe { Self::read(&without_data, 0) }
    }

    /// Reads and validates the structure.
    ///
    /// # Errors
    /// [`Error`], which names the field and the value.
    ///
    /// # Safety
    /// `shape` and `strides` must be null or point to `ndim` integers each.
    pub(super) unsafe fn read(raw: &abi::Tensor, flags: u64) -> Result<Self, Error> {
        let item = item(raw.dtype, flags)?;
        let ndim = usize::try_from(raw.ndim)
            .ok()
            .filter(|&ndim| ndim <= MAX_NDIM)
            .ok_or(Error::Dimensions(raw.ndim))?;
        // SAFETY: the caller guarantees that both are null or point to `ndim` integers.
        let (shape, strides) = unsafe { (integers(raw.shape, ndim), integers(raw.strides, ndim)) };
        let shape = shape.ok_or(Error::NoShape(raw.ndim))?;
        // Without dimensions, the strides are irrelevant.
        let strides = strides.filter(|_| ndim > 0);
        let (offset, odd) = (
            raw.byte_offset / item.size() as u64,
            raw.byte_offset % item.size() as u64,
        );
        let offset = i64::try_from(offset).unwrap_or(i64::MAX);
        let layout = Layout::new(shape, strides, offset, item.size())?;
        let pointer = raw.data.expose_provenance();
        if pointer == 0 && layout.elements() != 0 {
            return Err(Error::NoData(layout.shape().to_vec()));
        }
        // The remainder of an offset that is not a multiple of the item's size is added to the pointer.
        let pointer = pointer.wrapping_add(odd as usize);
        layout.addresses(pointer)?;
        Ok(Self {
            pointer,
            device: raw.device.into(),
            item,
            layout,
            read_only: flags & abi::FLAG_READ_ONLY != 0,
            copied: flags & abi::FLAG_IS_COPIED != 0,
        })
    }
}

/// # Safety
/// `first` must be null or point to `count` integers.
unsafe fn integers<'a>(first: *const i64, count: usize) -> Option<&'a [i64]> {
    if count == 0 {
        return Some(&[]);
    }
    // SAFETY: the caller guarantees that `first` points to `count` integers.
    (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, count) })
}

/// The item of a DLPack type. Numbers of fewer than 8 bits are read where each has a byte of its own, or they fill one.
fn item(dtype: abi::DataType, flags: u64) -> Result<ItemType, Error> {
    let error = match dtype.lanes {
        1 => Error::DataType(dtype),
        lanes => Error::Lanes(lanes),
    };
    ItemType::of_dlpack(dtype)
        .filter(|_| dtype.fills_bytes() || flags & abi::FLAG_IS_PADDED != 0)
        .ok_or(error)
}
