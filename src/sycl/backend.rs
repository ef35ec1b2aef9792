//! Backends, by dpctl's numbers and the names in filter strings.

use std::ffi::c_uint;
use std::fmt;

/// The backend of a SYCL object. The numbers are those of `DPCTLSyclBackendType`, the same in dpctl 0.17 and 0.22
/// except HIP, which only the newer one has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Level Zero, the only backend whose memory this crate can use.
    LevelZero,
    /// OpenCL.
    OpenCl,
    /// CUDA.
    Cuda,
    /// HIP.
    Hip,
    /// A backend without a name in dpctl.
    Unknown,
}

impl Backend {
    pub(super) fn from_dpctl(number: c_uint) -> Self {
        match number >> 16 {
            0b0001 => Self::Cuda,
            0b0010 => Self::LevelZero,
            0b0100 => Self::OpenCl,
            0b1000 => Self::Hip,
            _ => Self::Unknown,
        }
    }
}

/// As in a filter string.
impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::LevelZero => "level_zero",
            Self::OpenCl => "opencl",
            Self::Cuda => "cuda",
            Self::Hip => "hip",
            Self::Unknown => "unknown",
        })
    }
}
