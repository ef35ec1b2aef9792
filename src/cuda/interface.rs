//! `__cuda_array_interface__` as data, and its validation.

use super::Error;
use crate::suai::{self, ElementType, Layout, Record};

/// The dictionary's fields as found; `None` where the key is absent or its value is Python's `None`.
#[derive(Debug, Clone, Default)]
pub struct Fields<'a> {
    /// `version`.
    pub version: Option<i64>,
    /// `data[0]`, the address.
    pub pointer: Option<u64>,
    /// `data[1]`, whether writing is forbidden.
    pub read_only: bool,
    /// `typestr`.
    pub typestr: Option<&'a str>,
    /// `descr`.
    pub descr: Option<Record>,
    /// `shape`.
    pub shape: Option<&'a [i64]>,
    /// `strides`, in bytes.
    pub strides: Option<&'a [i64]>,
    /// `stream`.
    pub stream: Option<i64>,
}

/// The work of the producer that precedes an access to the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// None, by the producer's word.
    Nothing,
    /// All work of the CUDA context: the interface before version 3 does not tell.
    Context,
    /// The work in a stream, by its handle; the default streams have the handles 1 and 2.
    Stream(usize),
}

/// The validated `__cuda_array_interface__` of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The address of the element with all indices 0; 0 only without elements.
    pub pointer: usize,
    /// Whether writing is forbidden.
    pub read_only: bool,
    /// The type of the elements.
    pub element: ElementType,
    /// Shape and strides.
    pub layout: Layout,
    /// The work that an access has to follow.
    pub order: Order,
}

impl Interface {
    /// Validates the fields.
    ///
    /// # Errors
    /// [`Error::Version`], [`Error::Stream`], and [`Error::Field`] with the field and the value.
    pub fn read(fields: &Fields<'_>) -> Result<Self, Error> {
        let missing = |field| suai::Error::Missing(field);
        let version = fields.version.ok_or(missing("version"))?;
        let order = match (version, fields.stream) {
            (0..=2, _) => Order::Context,
            (3, None) => Order::Nothing,
            (3, Some(stream)) => match usize::try_from(stream) {
                Ok(handle) if handle != 0 => Order::Stream(handle),
                _ => return Err(Error::Stream(stream)),
            },
            _ => return Err(Error::Version(version)),
        };
        let shape = fields.shape.ok_or(missing("shape"))?;
        let typestr = fields.typestr.ok_or(missing("typestr"))?;
        let element = ElementType::read(typestr, fields.descr.clone())?;
        let pointer = fields.pointer.ok_or(missing("data"))?;
        let pointer = usize::try_from(pointer).map_err(|_| suai::Error::OutOfRange {
            field: "data",
            value: pointer.to_string(),
        })?;
        let layout = match fields.strides {
            None => Layout::new(shape, None, 0, element.size())?,
            Some(strides) => Layout::with_byte_strides(shape, strides, element.size())?,
        };
        if pointer == 0 && layout.elements() != 0 {
            let shape = layout.shape().to_vec();
            return Err(suai::Error::NullPointer(shape).into());
        }
        layout.extent().addresses(pointer)?;
        Ok(Self {
            pointer,
            read_only: fields.read_only,
            element,
            layout,
            order,
        })
    }
}
