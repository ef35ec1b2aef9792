//! What can be wrong with the fields of the interface.

use super::{Allocation, Extent, MAX_DEPTH, MAX_NDIM, VERSION};

/// Why a `__sycl_usm_array_interface__` cannot be believed; each message names the field and its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field that the interface requires is not there.
    #[error("the field '{field}' is missing")]
    Missing {
        /// The dictionary's key.
        field: &'static str,
    },
    /// The interface has a version that nobody has defined.
    #[error("'version' is {version}; the only version is {VERSION}")]
    Version {
        /// What the dictionary says.
        version: i64,
    },
    /// An integer that this machine's addresses cannot hold. The Python layer also answers with this for
    /// integers of more than 64 bits.
    #[error("'{field}' is {value}, which is out of range")]
    OutOfRange {
        /// The dictionary's key.
        field: &'static str,
        /// The integer, in decimal.
        value: String,
    },
    /// A dimension is negative.
    #[error("'shape' has {value} at index {index}; a dimension cannot be negative")]
    NegativeDimension {
        /// Which entry of the shape.
        index: usize,
        /// The entry.
        value: i64,
    },
    /// More dimensions than NumPy and the buffer protocol have room for.
    #[error("'shape' has {ndim} dimensions; at most {MAX_NDIM} are possible")]
    TooManyDimensions {
        /// The number of dimensions.
        ndim: usize,
    },
    /// The number of bytes does not fit into an `isize`.
    #[error("'shape' {shape:?} with items of {itemsize} bytes is more than any memory can hold")]
    ShapeOverflow {
        /// The shape.
        shape: Vec<usize>,
        /// Bytes of one item.
        itemsize: usize,
    },
    /// Not as many strides as dimensions.
    #[error("'strides' has {strides} entries where 'shape' has {shape}")]
    StridesLength {
        /// The length of the strides.
        strides: usize,
        /// The length of the shape.
        shape: usize,
    },
    /// The elements that shape, strides and offset select lie further apart than any memory reaches.
    #[error(
        "'strides' {} and 'offset' {offset} with 'shape' {shape:?} and items of {itemsize} bytes reach further than any \
         memory",
        .strides.as_ref().map_or_else(|| "None".to_owned(), |strides| format!("{strides:?}"))
    )]
    ReachOverflow {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements; `None` for row-major.
        strides: Option<Vec<isize>>,
        /// The offset, in elements.
        offset: isize,
        /// Bytes of one item.
        itemsize: usize,
    },
    /// The type string is not one that the interface allows.
    #[error("'typestr' is '{typestr}': {reason}")]
    Typestr {
        /// The type string.
        typestr: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The record description does not describe items of the size that the type string tells.
    #[error("'descr' describes {described} bytes where 'typestr' says {itemsize}")]
    DescrSize {
        /// The sum of the fields.
        described: usize,
        /// The size in the type string.
        itemsize: usize,
    },
    /// A record, or a sub-array in one, is larger than any memory.
    #[error("'descr': the field '{name}' makes the record larger than any memory")]
    DescrOverflow {
        /// The field that is too much.
        name: String,
    },
    /// A field name which the buffer protocol cannot spell.
    #[error(
        "'descr': the field name '{name}' has a ':' or a NUL in it, which no buffer format can carry"
    )]
    DescrName {
        /// The name.
        name: String,
    },
    /// Records nested deeper than [`MAX_DEPTH`].
    #[error("'descr' nests records more than {MAX_DEPTH} deep")]
    DescrDepth,
    /// The items have no buffer format (PEP 3118), or none on this machine.
    #[error("items of type '{typestr}' have no buffer format on this machine")]
    NoFormat {
        /// The type string.
        typestr: String,
    },
    /// A null pointer, where the array has elements.
    #[error("'data' has the pointer 0, but 'shape' {shape:?} has elements")]
    NullPointer {
        /// The shape.
        shape: Vec<usize>,
    },
    /// The elements would lie outside the address space.
    #[error(
        "'shape', 'strides' and 'offset' lead to bytes {}..{} from the pointer in 'data', {pointer:#x}, which are \
         outside the address space",
        .extent.start(), .extent.end()
    )]
    OutsideAddressSpace {
        /// The pointer.
        pointer: usize,
        /// The bytes touched, relative to the pointer.
        extent: Extent,
    },
    /// The elements lie outside the allocation that the pointer belongs to.
    #[error(
        "the array touches bytes {}..{} from its pointer {pointer:#x}, but the allocation is {} bytes at {:#x} \
         ({}..{} from the pointer)",
        .extent.start(), .extent.end(), .allocation.size, .allocation.base,
        .allocation.base as i128 - *.pointer as i128,
        .allocation.base as i128 + .allocation.size as i128 - *.pointer as i128
    )]
    OutsideAllocation {
        /// The pointer.
        pointer: usize,
        /// The bytes touched, relative to the pointer.
        extent: Extent,
        /// What Level Zero says of the pointer.
        allocation: Allocation,
    },
}
