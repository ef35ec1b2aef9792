//! The fields of an untyped item: `descr`.

use super::layout::MAX_NDIM;
use super::{Error, ItemType, Kind};

/// The largest depth of nested records.
///
/// Code that reads a Python `descr` has to check the depth itself, as a Python list can contain itself.
pub const MAX_DEPTH: usize = 32;

/// The fields of an item of kind `V` (NumPy, "The array interface protocol", `descr`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    fields: Vec<RecordField>,
    size: usize,
    depth: usize,
}

/// One field of a record; fields follow each other without gaps.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordField {
    /// The field's name; empty for padding.
    pub name: String,
    /// The type of the field, or of each element of it when it is an array.
    pub item: FieldType,
    /// The shape of a field that is an array; empty for a single value.
    pub shape: Vec<usize>,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// A plain item.
    Item(ItemType),
    /// A nested record.
    Record(Record),
}

impl Record {
    /// A record of `fields` in this order.
    ///
    /// # Errors
    /// [`Error::DescrOverflow`], [`Error::DescrName`], [`Error::DescrDepth`], and [`Error::TooManyDimensions`] for a field's
    /// shape.
    pub fn new(fields: Vec<RecordField>) -> Result<Self, Error> {
        let (mut size, mut depth) = (0usize, 1);
        for field in &fields {
            if field.name.contains([':', '\0']) {
                return Err(Error::DescrName {
                    name: field.name.clone(),
                });
            }
            if field.shape.len() > MAX_NDIM {
                return Err(Error::TooManyDimensions {
                    ndim: field.shape.len(),
                });
            }
            if let FieldType::Record(record) = &field.item {
                depth = depth.max(record.depth + 1);
            }
            size = field
                .size()
                .and_then(|bytes| size.checked_add(bytes))
                .filter(|&size| isize::try_from(size).is_ok())
                .ok_or_else(|| Error::DescrOverflow {
                    name: field.name.clone(),
                })?;
        }
        if depth > MAX_DEPTH {
            return Err(Error::DescrDepth);
        }
        Ok(Self {
            fields,
            size,
            depth,
        })
    }

    /// The fields in order.
    #[must_use]
    pub fn fields(&self) -> &[RecordField] {
        &self.fields
    }

    /// The sum of the fields in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The record's format in the buffer protocol (PEP 3118): `T{...}`, each field in standard size with its byte
    /// order, padding as `x`.
    ///
    /// # Errors
    /// [`Error::NoFormat`] when a field has none.
    pub fn format(&self) -> Result<String, Error> {
        let mut format = String::from("T{");
        for field in &self.fields {
            if !field.shape.is_empty() {
                let sizes: Vec<String> = field.shape.iter().map(usize::to_string).collect();
                format.push_str(&format!("({})", sizes.join(",")));
            }
            match &field.item {
                FieldType::Item(item) => format.push_str(&item.standard_format(true)?),
                FieldType::Record(record) => format.push_str(&record.format()?),
            }
            if !field.is_padding() {
                format.push_str(&format!(":{}:", field.name));
            }
        }
        format.push('}');
        Ok(format)
    }
}

impl RecordField {
    /// The size of the field in bytes, or `None` when that overflows a `usize`.
    fn size(&self) -> Option<usize> {
        let item = match &self.item {
            FieldType::Item(item) => item.size(),
            FieldType::Record(record) => record.size,
        };
        self.shape
            .iter()
            .try_fold(item, |bytes, &size| bytes.checked_mul(size))
    }

    /// Whether the field is padding: untyped and without a name.
    fn is_padding(&self) -> bool {
        self.name.is_empty()
            && matches!(&self.item, FieldType::Item(item) if item.kind() == Kind::Void)
    }
}
