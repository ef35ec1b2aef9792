//! The dictionary's fields, and the validated interface.

use super::error::{Error, VERSION};
use super::layout::Layout;
use super::record::{ElementType, Record};

/// The dictionary's fields as found; `None` where the key is absent or its value is Python's `None`.
///
/// Integers have 64 bits. The Python layer refuses larger ones and negative pointers with [`Error::OutOfRange`], and
/// processes `syclobj` itself.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// `version`.
    pub version: Option<i64>,
    /// `data[0]`, the address.
    pub pointer: Option<u64>,
    /// `data[1]`; see [`Interface::flag`].
    pub flag: Option<bool>,
    /// `typestr`.
    pub typestr: Option<String>,
    /// `descr`; as in NumPy, it is only relevant when `typestr` is of kind `V`.
    pub descr: Option<Record>,
    /// `shape`.
    pub shape: Option<Vec<i64>>,
    /// `strides`, in elements.
    pub strides: Option<Vec<i64>>,
    /// `offset`, in elements; 0 when absent.
    pub offset: Option<i64>,
}

/// The validated `__sycl_usm_array_interface__` of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The address that [`Layout::byte_offset`] is relative to; 0 only without elements.
    pub pointer: usize,
    /// `data[1]` as it was given. `true` means "read-only" in dpctl's documentation, NumPy and Numba, and "writable" in dpctl's own
    /// objects. Without a flag, writing is allowed.
    pub flag: Option<bool>,
    /// The type of the items: a record if they are of kind kind `V` and have a description with fields.
    pub element: ElementType,
    /// Shape, strides and offset.
    pub layout: Layout,
}

impl Interface {
    /// Validates the fields.
    ///
    /// # Errors
    /// [`Error`], which names the field and the value.
    pub fn read(fields: &Fields) -> Result<Self, Error> {
        match required("version", fields.version)? {
            VERSION => {}
            version => return Err(Error::Version(version)),
        }
        let offset = fields.offset.unwrap_or(0);
        Self::of(fields, |shape, size| {
            Layout::new(shape, fields.strides.as_deref(), offset, size)
        })
    }

    /// Validates all fields but the version, with a layout that `layout` makes of the shape and the size of an item.
    pub(crate) fn of(
        fields: &Fields,
        layout: impl FnOnce(&[i64], usize) -> Result<Layout, Error>,
    ) -> Result<Self, Error> {
        let pointer = required("data", fields.pointer)?;
        let pointer = usize::try_from(pointer).map_err(|_| Error::OutOfRange {
            field: "data",
            value: pointer.to_string(),
        })?;
        let element = ElementType::read(
            required("typestr", fields.typestr.as_deref())?,
            fields.descr.clone(),
        )?;
        let layout = layout(required("shape", fields.shape.as_deref())?, element.size())?;
        if pointer == 0 && layout.elements() != 0 {
            return Err(Error::NullPointer(layout.shape().to_vec()));
        }
        layout.addresses(pointer)?;
        Ok(Self {
            pointer,
            flag: fields.flag,
            element,
            layout,
        })
    }

    /// The lowest address of the elements, where an untyped view of the array begins. Without elements, the pointer itself.
    #[must_use]
    pub fn start(&self) -> usize {
        if self.layout.extent().is_empty() {
            self.pointer
        } else {
            // Cannot wrap, as `read` has validated these addresses.
            self.pointer.wrapping_add_signed(self.layout.extent().start)
        }
    }
}

fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Error> {
    match value {
        Some(value) => Ok(value),
        None => Err(Error::Missing(field)),
    }
}
