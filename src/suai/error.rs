//! The limits of the interface, and the errors in its fields.

use std::ops::Range;

/// The only version that dpctl's documentation defines.
pub const VERSION: i64 = 1;

/// The most dimensions that NumPy and the buffer protocol (`PyBUF_MAX_NDIM`) support.
pub const MAX_NDIM: usize = 64;

/// The largest depth of nested records.
///
/// Code that reads a Python `descr` has to check the depth itself, as a Python list can contain itself.
pub const MAX_DEPTH: usize = 32;

/// The most fields of a record, with those of the records in it.
///
/// Code that reads a Python `descr` has to count them itself, as a Python list can contain another one many times.
pub const MAX_FIELDS: usize = 1 << 16;

/// Why a `__sycl_usm_array_interface__` is invalid; each message names the field and its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A required field is missing.
    #[error("the field '{0}' is missing")]
    Missing(&'static str),
    /// The interface has an unknown version.
    #[error("'version' is {0}; the only version is {VERSION}")]
    Version(i64),
    /// An integer is out of the range of this machine's addresses. The Python layer also uses this for integers of more than
    /// 64 bits.
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
        /// The index in the shape.
        index: usize,
        /// The entry.
        value: i64,
    },
    /// There are more dimensions than NumPy and the buffer protocol support.
    #[error("'shape' has {0} dimensions; at most {MAX_NDIM} are possible")]
    TooManyDimensions(usize),
    /// The number of bytes does not fit into an `isize`.
    #[error("'shape' {shape:?} with items of {itemsize} bytes is more than any memory can hold")]
    ShapeOverflow {
        /// The shape.
        shape: Vec<usize>,
        /// Bytes of one item.
        itemsize: usize,
    },
    /// The numbers of strides and dimensions differ.
    #[error("'strides' has {strides} entries where 'shape' has {shape}")]
    StridesLength {
        /// The length of the strides.
        strides: usize,
        /// The length of the shape.
        shape: usize,
    },
    /// The extent of shape, strides and offset is larger than the address space.
    #[error(
        "'strides' {} and 'offset' {offset} with 'shape' {shape:?} and items of {itemsize} bytes reach further than any \
         memory",
        .strides.as_ref().map_or_else(|| "None".to_owned(), |strides| format!("{strides:?}"))
    )]
    ExtentOverflow {
        /// The shape.
        shape: Vec<usize>,
        /// The strides, in elements; `None` for row-major.
        strides: Option<Vec<isize>>,
        /// The offset, in elements.
        offset: isize,
        /// Bytes of one item.
        itemsize: usize,
    },
    /// The type string is not allowed by the interface.
    #[error("'typestr' is '{typestr}': {reason}")]
    Typestr {
        /// The type string.
        typestr: String,
        /// The reason.
        reason: &'static str,
    },
    /// Strides or an offset cannot be counted in elements.
    #[error(
        "a distance of {bytes} bytes is no multiple of the {itemsize} bytes of an element, and strides and offset count \
         elements; for NumPy and the buffer protocol they count bytes"
    )]
    NotInElements {
        /// The stride or the offset, in bytes.
        bytes: isize,
        /// Bytes of one item.
        itemsize: usize,
    },
    /// The sizes of the record description and of the type string differ.
    #[error("'descr' describes {described} bytes where 'typestr' says {itemsize}")]
    DescrSize {
        /// The sum of the fields.
        described: usize,
        /// The size in the type string.
        itemsize: usize,
    },
    /// A record, or a sub-array in one, is larger than any memory.
    #[error("'descr': the field '{0}' makes the record larger than any memory")]
    DescrOverflow(String),
    /// A field is a record of 0 bytes.
    #[error("'descr': the field '{0}' is a record of 0 bytes")]
    DescrEmpty(String),
    /// Two fields have one name.
    #[error("'descr' has two fields of the name '{0}'")]
    DescrTwice(String),
    /// A field name has a character that buffer formats do not allow.
    #[error(
        "'descr': the field name '{0}' has a ':' or a NUL in it, which no buffer format can carry"
    )]
    DescrName(String),
    /// The record, with the records in it, has more fields than [`MAX_FIELDS`].
    #[error("'descr' has more than {MAX_FIELDS} fields")]
    DescrFields,
    /// Records are nested deeper than [`MAX_DEPTH`].
    #[error("'descr' nests records more than {MAX_DEPTH} deep")]
    DescrDepth,
    /// The items have no buffer format (PEP 3118) on this machine.
    #[error("items of type '{0}' have no buffer format on this machine")]
    NoFormat(String),
    /// The pointer is null although the array has elements.
    #[error("'data' has the pointer 0, but 'shape' {0:?} has elements")]
    NullPointer(Vec<usize>),
    /// The elements are outside of the address space.
    #[error(
        "'shape', 'strides' and 'offset' lead to bytes {}..{} from the pointer in 'data', {pointer:#x}, which are \
         outside the address space",
        .extent.start, .extent.end
    )]
    OutsideAddressSpace {
        /// The pointer.
        pointer: usize,
        /// The bytes touched, relative to the pointer.
        extent: Range<isize>,
    },
    /// The elements are outside of the allocation that the pointer belongs to.
    #[error(
        "the array touches bytes {}..{} from its pointer {pointer:#x}, but the allocation is {} bytes at {:#x} \
         ({}..{} from the pointer)",
        .extent.start, .extent.end, .size, .base,
        *.base as i128 - *.pointer as i128,
        *.base as i128 + *.size as i128 - *.pointer as i128
    )]
    OutsideAllocation {
        /// The pointer.
        pointer: usize,
        /// The bytes touched, relative to the pointer.
        extent: Range<isize>,
        /// The first address of the allocation that Level Zero reports for the pointer.
        base: usize,
        /// The allocation's size in bytes.
        size: usize,
    },
}
