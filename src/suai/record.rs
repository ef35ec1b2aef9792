//! The types of an array's elements: plain items, and records of fields (`descr`).

use std::fmt;
use std::sync::Arc;

use super::error::{Error, MAX_DEPTH, MAX_NDIM};
use super::item::{ItemType, Kind};

/// The type of an element, or of a field: a plain item or a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// A plain item.
    Item(ItemType),
    /// A record.
    Record(Arc<Record>),
}

/// The fields of an item of kind `V` (NumPy, "The array interface protocol", `descr`), which follow each other without gaps.
///
/// ```
/// use zeusm::suai::{ElementType, Record, RecordField};
///
/// let field = |name: &str, typestr: &str| {
///     Ok::<_, zeusm::suai::Error>(RecordField {
///         name: name.to_owned(),
///         element: ElementType::Item(typestr.parse()?),
///         shape: vec![],
///     })
/// };
/// let record = Record::new(vec![field("x", "<f4")?, field("", "|V4")?, field("y", "<i8")?])?;
/// assert_eq!((record.size(), record.find("y").unwrap().0), (16, 8));
/// assert_eq!(record.to_string(), "[('x', '<f4'), ('', '|V4'), ('y', '<i8')]");
/// # Ok::<(), zeusm::suai::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    fields: Vec<RecordField>,
    size: usize,
    depth: usize,
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordField {
    /// The field's name; empty for padding.
    pub name: String,
    /// The type of the field, or of each element of it when it is an array.
    pub element: ElementType,
    /// The shape of a field that is an array; empty for a single value.
    pub shape: Vec<usize>,
}

impl ElementType {
    /// Bytes, as the memory classes export them: `|u1`.
    pub const BYTE: Self = Self::Item(ItemType::BYTE);

    /// The type of `typestr`: a record if it is of kind [`Kind::Void`] and `descr` has fields with names.
    ///
    /// # Errors
    /// [`Error::Typestr`], [`Error::DescrSize`].
    pub fn read(typestr: &str, descr: Option<Record>) -> Result<Self, Error> {
        let item: ItemType = typestr.parse()?;
        let Some(record) = descr.filter(|_| item.kind() == Kind::Void) else {
            return Ok(item.into());
        };
        if record.size != item.size() {
            return Err(Error::DescrSize {
                described: record.size,
                itemsize: item.size(),
            });
        }
        let has_fields = record.named().next().is_some();
        Ok(if has_fields {
            Self::Record(Arc::new(record))
        } else {
            item.into()
        })
    }

    /// The size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Item(item) => item.size(),
            Self::Record(record) => record.size,
        }
    }

    /// The alignment in bytes that compiled code relies on: that of a number in C; 1 for untyped bytes and records.
    #[must_use]
    pub fn alignment(&self) -> usize {
        match self {
            Self::Item(item) => match item.kind() {
                Kind::Void => 1,
                _ if item.is_complex() => item.size() / 2,
                _ => item.size(),
            },
            Self::Record(_) => 1,
        }
    }

    /// The record, unless this is a plain item.
    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Item(_) => None,
            Self::Record(record) => Some(record),
        }
    }

    /// The item, if it is one that `typestr` has no letter for.
    #[must_use]
    pub fn narrow(&self) -> Option<ItemType> {
        match self {
            Self::Item(item) => item.is_narrow().then_some(*item),
            Self::Record(_) => None,
        }
    }

    /// `typestr`: the item's, or untyped bytes for a record.
    #[must_use]
    pub fn typestr(&self) -> String {
        match self {
            Self::Item(item) => item.to_string(),
            Self::Record(record) => format!("|V{}", record.size),
        }
    }

    /// The format in the buffer protocol (PEP 3118).
    ///
    /// # Errors
    /// [`Error::NoFormat`]; see [`ItemType::format`].
    pub fn format(&self) -> Result<String, Error> {
        match self {
            Self::Item(item) => item.format(),
            Self::Record(record) => record.format(),
        }
    }
}

impl From<ItemType> for ElementType {
    fn from(item: ItemType) -> Self {
        Self::Item(item)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(item) => write!(formatter, "'{item}'"),
            Self::Record(record) => record.fmt(formatter),
        }
    }
}

impl Record {
    /// A record of `fields` in this order. As in NumPy, a field without a name that is no padding is named "f" and its
    /// position.
    ///
    /// # Errors
    /// [`Error::DescrOverflow`], [`Error::DescrName`], [`Error::DescrTwice`], [`Error::DescrEmpty`], [`Error::DescrDepth`],
    /// and [`Error::TooManyDimensions`] for a field's shape.
    pub fn new(mut fields: Vec<RecordField>) -> Result<Self, Error> {
        let (mut size, mut depth) = (0usize, 1);
        for (position, field) in fields.iter_mut().enumerate() {
            if field.name.is_empty() && !field.is_padding() {
                field.name = format!("f{position}");
            }
            field.check()?;
            if let Some(record) = field.element.record() {
                depth = depth.max(record.depth + 1);
            }
            size = field
                .size()
                .and_then(|bytes| size.checked_add(bytes))
                .filter(|&size| isize::try_from(size).is_ok())
                .ok_or_else(|| Error::DescrOverflow(field.name.clone()))?;
        }
        if depth > MAX_DEPTH {
            return Err(Error::DescrDepth);
        }
        let mut names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        names.sort_unstable();
        let twice =
            |pair: &&[&str]| matches!(pair, [one, other] if one == other && !one.is_empty());
        if let Some([name, _]) = names.windows(2).find(twice) {
            return Err(Error::DescrTwice((*name).to_owned()));
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

    /// The fields that have a name.
    pub fn named(&self) -> impl Iterator<Item = &RecordField> {
        self.fields.iter().filter(|field| !field.name.is_empty())
    }

    /// The field of a name, and the number of bytes before it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<(usize, &RecordField)> {
        let mut offset = 0;
        for field in &self.fields {
            if field.name == name && !name.is_empty() {
                return Some((offset, field));
            }
            offset += field.size()?;
        }
        None
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
            match &field.element {
                ElementType::Item(item) => format.push_str(&item.standard_format(true)?),
                ElementType::Record(record) => format.push_str(&record.format()?),
            }
            if !field.is_padding() {
                format.push_str(&format!(":{}:", field.name));
            }
        }
        format.push('}');
        Ok(format)
    }
}

/// As the `descr` of a `numpy.dtype` is printed.
impl fmt::Display for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[")?;
        for (position, field) in self.fields.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(formatter, "{comma}('{}', {}", field.name, field.element)?;
            match field.shape.as_slice() {
                [] => {}
                [one] => write!(formatter, ", ({one},)")?,
                several => {
                    let sizes: Vec<String> = several.iter().map(usize::to_string).collect();
                    write!(formatter, ", ({})", sizes.join(", "))?;
                }
            }
            formatter.write_str(")")?;
        }
        formatter.write_str("]")
    }
}

impl RecordField {
    /// The size of the field in bytes, or `None` when that overflows a `usize`.
    fn size(&self) -> Option<usize> {
        self.shape
            .iter()
            .try_fold(self.element.size(), |bytes, &size| bytes.checked_mul(size))
    }

    /// Whether the field is padding: untyped and without a name.
    #[must_use]
    pub fn is_padding(&self) -> bool {
        self.name.is_empty()
            && matches!(&self.element, ElementType::Item(item) if item.kind() == Kind::Void)
    }

    /// Refuses a field by itself.
    fn check(&self) -> Result<(), Error> {
        let name = || self.name.clone();
        if self.name.contains([':', '\0']) {
            return Err(Error::DescrName(name()));
        }
        if self.shape.len() > MAX_NDIM {
            return Err(Error::TooManyDimensions(self.shape.len()));
        }
        match self.element.size() {
            0 => Err(Error::DescrEmpty(name())),
            _ => Ok(()),
        }
    }
}
