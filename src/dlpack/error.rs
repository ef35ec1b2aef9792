//! The errors of DLPack's import and export.

use super::abi;
use crate::suai;

/// Why a DLPack tensor cannot be imported, or an array cannot be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The structure has an unsupported version.
    #[error("it is of DLPack {}.{}; version {} is the newest supported one", .0.major, .0.minor, abi::VERSION.major)]
    Version(abi::Version),
    /// The number of dimensions is out of range.
    #[error("'ndim' is {0}; it must be 0 to {most}", most = suai::MAX_NDIM)]
    Dimensions(i32),
    /// The shape is null although there are dimensions.
    #[error("'shape' is null, but 'ndim' is {0}")]
    NoShape(i32),
    /// The data pointer is null although there are elements.
    #[error("'data' is null, but 'shape' {0:?} has elements")]
    NoData(Vec<usize>),
    /// The elements are vectors.
    #[error(
        "elements of {0} lanes are not supported, only single numbers and pairs of float4_e2m1fn"
    )]
    Lanes(u16),
    /// The type of the elements is not supported.
    #[error("elements of type code {} with {} bits are not supported", .0.code, .0.bits)]
    DataType(abi::DataType),
    /// The type of the items does not exist in DLPack.
    #[error("items of type '{0}' have no DLPack type")]
    Item(suai::ItemType),
    /// Only the versioned structure says that each number of fewer than 8 bits has a byte of its own.
    #[error("{} needs DLPack's versioned structure, by max_version=(1, 1)", _0.name().unwrap_or_default())]
    Unversioned(suai::ItemType),
    /// Shape, strides and offset are inconsistent, or reach beyond the address space.
    #[error(transparent)]
    Layout(#[from] suai::Error),
}
