//! Access attributes of pages.

use level_zero_sys as sys;
use rustix::mm::ProtFlags;

use crate::abi::result::ZeResult;

/// How mapped pages may be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Not at all.
    None,
    /// Reads and writes.
    ReadWrite,
    /// Reads only.
    ReadOnly,
}

impl Access {
    /// The attribute of the API.
    pub fn attribute(self) -> sys::ze_memory_access_attribute_t {
        match self {
            Self::None => sys::ZE_MEMORY_ACCESS_ATTRIBUTE_NONE,
            Self::ReadWrite => sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE,
            Self::ReadOnly => sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY,
        }
    }

    /// The protection of the pages.
    pub fn protection(self) -> ProtFlags {
        match self {
            Self::None => ProtFlags::empty(),
            Self::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
            Self::ReadOnly => ProtFlags::READ,
        }
    }
}

impl TryFrom<sys::ze_memory_access_attribute_t> for Access {
    type Error = sys::ze_result_t;

    fn try_from(attribute: sys::ze_memory_access_attribute_t) -> ZeResult<Self> {
        match attribute {
            sys::ZE_MEMORY_ACCESS_ATTRIBUTE_NONE => Ok(Self::None),
            sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE => Ok(Self::ReadWrite),
            sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY => Ok(Self::ReadOnly),
            _ => Err(sys::ZE_RESULT_ERROR_INVALID_ENUMERATION),
        }
    }
}
