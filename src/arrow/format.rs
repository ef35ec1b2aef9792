//! Arrow's letters for the types of numbers, and why an array is not exchanged.

use std::ffi::CStr;

use crate::dlpack;
use crate::suai::ItemType;

/// Why an array is not exchanged by Arrow's structures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The items have no type of Arrow in which each has bytes of its own.
    #[error(
        "items of type '{0}' have no Arrow type of the same bytes: copy_to_host() gives an array of NumPy to convert"
    )]
    Item(ItemType),
    /// The Arrow type is not one of numbers.
    #[error(
        "elements of the Arrow format '{0}' are not imported, only integers and floating-point numbers of whole bytes: cast or decode the array"
    )]
    Format(String),
    /// There are nulls, or there may be.
    #[error(
        "the array has nulls, or has not counted them (null_count is {0}): count them, and fill them, in pyarrow by fill_null()"
    )]
    Nulls(i64),
    /// The structure is not that of an array of numbers which can be read now.
    #[error("{0}")]
    Structure(&'static str),
    /// The array does not fit DLPack, by which it is imported.
    #[error(transparent)]
    Dlpack(#[from] dlpack::Error),
}

/// Each with NumPy's name.
const FORMATS: [(&CStr, &str); 11] = [
    (c"c", "int8"),
    (c"s", "int16"),
    (c"i", "int32"),
    (c"l", "int64"),
    (c"C", "uint8"),
    (c"S", "uint16"),
    (c"I", "uint32"),
    (c"L", "uint64"),
    (c"e", "float16"),
    (c"f", "float32"),
    (c"g", "float64"),
];

/// The format of items.
pub(super) fn of(item: ItemType) -> Result<&'static CStr, Error> {
    let name = item.name().filter(|_| item.order().is_native());
    let found = FORMATS.iter().find(|it| Some(it.1) == name);
    found.map(|it| it.0).ok_or(Error::Item(item))
}

/// The items of a format.
pub(super) fn item(format: &CStr) -> Result<ItemType, Error> {
    let found = FORMATS.iter().find(|it| it.0 == format);
    let item = found.and_then(|it| ItemType::named(it.1));
    item.ok_or_else(|| Error::Format(format.to_string_lossy().into_owned()))
}
