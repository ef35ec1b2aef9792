//! What can be wrong with a tensor.

use super::abi;
use crate::suai;

/// Why a DLPack tensor cannot be taken, or an array not be given as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layout of the structure that nobody here knows.
    #[error("it is of DLPack {}.{}; version {} is the newest that is known", .0.major, .0.minor, abi::VERSION.major)]
    Version(abi::Version),
    /// A number of dimensions that no array has.
    #[error("'ndim' is {ndim}; it must be 0 to {}", suai::MAX_NDIM)]
    Dimensions {
        /// What the tensor says.
        ndim: i32,
    },
    /// Dimensions, but no shape.
    #[error("'shape' is null, but 'ndim' is {0}")]
    NoShape(i32),
    /// Elements, but no memory.
    #[error("'data' is null, but 'shape' {0:?} has elements")]
    NoData(Vec<usize>),
    /// Vectors as elements.
    #[error("elements of {0} lanes are not supported, only single ones")]
    Lanes(u16),
    /// A type of elements for which there is no other name here.
    #[error("elements of type code {} with {} bits are not supported", .0.code, .0.bits)]
    DataType(abi::DataType),
    /// Items that DLPack cannot name.
    #[error("items of type '{0}' have no DLPack type")]
    Item(suai::ItemType),
    /// Shape, strides and offset contradict each other or reach outside of all memory.
    #[error(transparent)]
    Layout(#[from] suai::Error),
}
