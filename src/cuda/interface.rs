//! `__cuda_array_interface__` as data, and its validation.

use super::Error;
use crate::suai::{self, ElementType, Fields, Layout};

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
    /// Validates the fields, whose strides are in bytes, and `stream`.
    ///
    /// # Errors
    /// [`Error::Version`], [`Error::Stream`], and [`Error::Field`] with the field and the value.
    pub fn read(fields: &Fields, stream: Option<i64>) -> Result<Self, Error> {
        let version = fields.version.ok_or(suai::Error::Missing("version"))?;
        let order = match (version, stream) {
            (0..=2, _) => Order::Context,
            (3, None) => Order::Nothing,
            (3, Some(stream)) => match usize::try_from(stream) {
                Ok(handle) if handle != 0 => Order::Stream(handle),
                _ => return Err(Error::Stream(stream)),
            },
            _ => return Err(Error::Version(version)),
        };
        let array = suai::Interface::of(fields, |shape, size| match &fields.strides {
            None => Layout::new(shape, None, 0, size),
            Some(strides) => Layout::with_byte_strides(shape, strides, size),
        })?;
        Ok(Self {
            pointer: array.pointer,
            read_only: array.flag == Some(true),
            element: array.element,
            layout: array.layout,
            order,
        })
    }
}
