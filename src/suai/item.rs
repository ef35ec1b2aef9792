//! The type of an array's items: `typestr`, and its names in other protocols.

use std::ffi::{c_long, c_ulong};
use std::fmt;
use std::str::FromStr;

use super::dlpack_type::DlpackType;
use super::error::Error;
use super::narrow::Narrow;

/// The kind of an item (NumPy, "The array interface protocol", `typestr`; dpctl's documentation allows the numeric kinds,
/// NumPy's also `V`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `b`: true or false, one byte.
    Bool,
    /// `i`: a signed integer.
    Int,
    /// `u`: an unsigned integer.
    Uint,
    /// `f`: a floating-point number.
    Float,
    /// `c`: a complex number of two floating-point numbers.
    Complex,
    /// `V`: untyped bytes, which a [`super::Record`] may describe.
    Void,
    /// A number of a format that `typestr` has no letter for: it shows it as untyped bytes, as `ml_dtypes` does.
    Narrow(Narrow),
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Self::Bool => 'b',
            Self::Int => 'i',
            Self::Uint => 'u',
            Self::Float => 'f',
            Self::Complex => 'c',
            Self::Void | Self::Narrow(_) => 'V',
        }
    }

    /// DLPack's code (`DLDataTypeCode`).
    fn dlpack(self) -> Option<u8> {
        match self {
            Self::Int => Some(0),
            Self::Uint => Some(1),
            Self::Float => Some(2),
            Self::Complex => Some(5),
            Self::Bool => Some(6),
            Self::Narrow(narrow) => Some(narrow.dlpack().code),
            Self::Void => None,
        }
    }
}

/// An item that NumPy has.
struct Known {
    kind: Kind,
    /// In bytes.
    size: usize,
    name: &'static str,
    /// The code in the buffer protocol (PEP 3118) in standard size; `None` for items that have no standard size.
    code: Option<&'static str>,
}

const fn known(kind: Kind, size: usize, name: &'static str, code: Option<&'static str>) -> Known {
    Known {
        kind,
        size,
        name,
        code,
    }
}

/// All items but untyped bytes, which may have any size.
const KNOWN: [Known; 16] = [
    known(Kind::Bool, 1, "bool", Some("?")),
    known(Kind::Int, 1, "int8", Some("b")),
    known(Kind::Int, 2, "int16", Some("h")),
    known(Kind::Int, 4, "int32", Some("i")),
    known(Kind::Int, 8, "int64", Some("q")),
    known(Kind::Uint, 1, "uint8", Some("B")),
    known(Kind::Uint, 2, "uint16", Some("H")),
    known(Kind::Uint, 4, "uint32", Some("I")),
    known(Kind::Uint, 8, "uint64", Some("Q")),
    known(Kind::Float, 2, "float16", Some("e")),
    known(Kind::Float, 4, "float32", Some("f")),
    known(Kind::Float, 8, "float64", Some("d")),
    known(Kind::Float, 16, "float128", None),
    known(Kind::Complex, 8, "complex64", Some("Zf")),
    known(Kind::Complex, 16, "complex128", Some("Zd")),
    known(Kind::Complex, 32, "complex256", None),
];

fn find(kind: Kind, size: usize) -> Option<&'static Known> {
    KNOWN
        .iter()
        .find(|known| known.size == size && known.kind == kind)
}

/// The order of an item's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// `<`: least significant byte first.
    Little,
    /// `>`: most significant byte first.
    Big,
    /// `|`: the item has no order, as it is one byte or untyped.
    Irrelevant,
}

impl ByteOrder {
    /// This machine's order.
    pub const NATIVE: Self = if cfg!(target_endian = "little") {
        Self::Little
    } else {
        Self::Big
    };

    /// Whether this is the machine's order, or irrelevant.
    #[must_use]
    pub fn is_native(self) -> bool {
        self == Self::Irrelevant || self == Self::NATIVE
    }

    fn letter(self) -> char {
        match self {
            Self::Little => '<',
            Self::Big => '>',
            Self::Irrelevant => '|',
        }
    }
}

/// The type of an item, as in `typestr`. Parsed from a string, and displayed in NumPy's form.
///
/// ```
/// use zeusm::suai::{ItemType, Kind};
///
/// let item: ItemType = "<c16".parse()?;
/// assert_eq!((item.kind(), item.size()), (Kind::Complex, 16));
/// assert_eq!(item.to_string(), "<c16");
/// assert_eq!("|u1".parse::<ItemType>()?.format()?, "B");
/// # Ok::<(), zeusm::suai::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ItemType {
    kind: Kind,
    size: usize,
    order: ByteOrder,
}

impl ItemType {
    /// Bytes, as the memory classes export them: `|u1`.
    pub const BYTE: Self = Self {
        kind: Kind::Uint,
        size: 1,
        order: ByteOrder::Irrelevant,
    };

    /// Numbers of double precision in this machine's order, the default of NumPy.
    pub const FLOAT64: Self = Self {
        kind: Kind::Float,
        size: 8,
        order: ByteOrder::NATIVE,
    };

    /// The kind of the item.
    #[must_use]
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// The item's size in bytes, never 0.
    #[must_use]
    pub fn size(self) -> usize {
        self.size
    }

    /// The order of the item's bytes.
    #[must_use]
    pub fn order(self) -> ByteOrder {
        self.order
    }

    /// The item of a name such as "float32", in this machine's order.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.name == name);
        let known = known.map(|known| Self::ordered(known.kind, known.size, ByteOrder::NATIVE));
        known.or_else(|| Narrow::named(name).map(Self::from))
    }

    /// The item of a DLPack type; a number of fewer than 8 bits has a byte of its own.
    #[must_use]
    pub fn of_dlpack(dtype: DlpackType) -> Option<Self> {
        let size = usize::from(dtype.bits).div_ceil(8);
        let known = KNOWN
            .iter()
            .find(|known| known.kind.dlpack() == Some(dtype.code) && known.size == size);
        match known.filter(|_| dtype.bits.is_multiple_of(8) && dtype.lanes == 1) {
            Some(known) => Some(Self::ordered(known.kind, size, ByteOrder::NATIVE)),
            None => Narrow::of_dlpack(dtype).map(Self::from),
        }
    }

    /// The format, if `typestr` has no letter for it.
    #[must_use]
    pub fn narrow(self) -> Option<Narrow> {
        match self.kind {
            Kind::Narrow(narrow) => Some(narrow),
            _ => None,
        }
    }

    /// The unsigned integer of the same size.
    #[must_use]
    pub fn bits(self) -> Option<Self> {
        let known = find(Kind::Uint, self.size)?;
        Some(Self::ordered(known.kind, known.size, ByteOrder::NATIVE))
    }

    /// NumPy's name, whatever the order; `None` for untyped bytes.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self.kind {
            Kind::Narrow(narrow) => Some(narrow.name()),
            kind => find(kind, self.size).map(|known| known.name),
        }
    }

    /// Whether it is a number of a standard size, which also devices compute with.
    #[must_use]
    pub fn is_standard(self) -> bool {
        find(self.kind, self.size).is_some_and(|known| known.code.is_some())
    }

    fn ordered(kind: Kind, size: usize, order: ByteOrder) -> Self {
        let has_order = size > 1 && kind != Kind::Void;
        let order = if has_order {
            order
        } else {
            ByteOrder::Irrelevant
        };
        Self { kind, size, order }
    }

    /// The item's format in the buffer protocol (PEP 3118 and Python's `struct`). For items in this machine's order it is a
    /// native format without a prefix, as `memoryview` can index no others. It is `l` and not `q` where a C `long` has 8
    /// bytes, as NumPy's int64 is a `long` there.
    ///
    /// # Errors
    /// [`Error::NoFormat`] for a 16-byte float, and a complex number of two, unless it is this machine's `long double` in its
    /// byte order.
    pub fn format(self) -> Result<String, Error> {
        let native = match (self.kind, self.size) {
            (Kind::Int, 8) if size_of::<c_long>() == 8 => "l",
            (Kind::Uint, 8) if size_of::<c_ulong>() == 8 => "L",
            (Kind::Float, 16) if HAS_LONG_DOUBLE_16 => "g",
            (Kind::Complex, 32) if HAS_LONG_DOUBLE_16 => "Zg",
            _ => return self.standard_format(!self.order.is_native()),
        };
        if self.order.is_native() {
            Ok(native.to_owned())
        } else {
            self.standard_format(true)
        }
    }

    /// The format of standard size, with the byte order before it if `prefix`.
    ///
    /// # Errors
    /// [`Error::NoFormat`] for 16-byte floats, which have no standard format.
    pub(super) fn standard_format(self, prefix: bool) -> Result<String, Error> {
        if self.kind == Kind::Void {
            return Ok(format!("{}x", self.size));
        }
        let code = find(self.kind, self.size).and_then(|known| known.code);
        let code = code.ok_or_else(|| {
            let narrow = self.narrow().map(|narrow| narrow.name().to_owned());
            Error::NoFormat(narrow.unwrap_or_else(|| self.to_string()))
        })?;
        Ok(match self.order {
            ByteOrder::Little if prefix => format!("<{code}"),
            ByteOrder::Big if prefix => format!(">{code}"),
            // In a record, as without a byte order the format would imply C's alignment.
            ByteOrder::Irrelevant if prefix => format!("={code}"),
            _ => code.to_owned(),
        })
    }

    /// DLPack's type, or `None` for untyped bytes and for any byte order but this machine's.
    #[must_use]
    pub fn dlpack(self) -> Option<DlpackType> {
        let dtype = match self.kind {
            Kind::Narrow(narrow) => narrow.dlpack(),
            _ => DlpackType {
                code: self.kind.dlpack()?,
                bits: u8::try_from(self.size.checked_mul(8)?).ok()?,
                lanes: 1,
            },
        };
        self.order.is_native().then_some(dtype)
    }
}

/// Whether C's `long double` has 16 bytes.
const HAS_LONG_DOUBLE_16: bool = cfg!(unix);

impl From<Narrow> for ItemType {
    fn from(narrow: Narrow) -> Self {
        Self::ordered(Kind::Narrow(narrow), narrow.size(), ByteOrder::NATIVE)
    }
}

impl FromStr for ItemType {
    type Err = Error;

    /// Parses a `typestr`: byte order (`<`, `>`, `|`, `=`, or none for this machine's), kind, size in bytes. As in
    /// NumPy, `|` for an item of several bytes means this machine's order.
    ///
    /// # Errors
    /// [`Error::Typestr`], with the string and the reason.
    fn from_str(typestr: &str) -> Result<Self, Error> {
        let malformed = |reason| Error::Typestr {
            typestr: typestr.to_owned(),
            reason,
        };
        let mut letters = typestr.chars();
        let mut next = || letters.next().ok_or_else(|| malformed("it ends too early"));
        let mut letter = next()?;
        let order = match letter {
            '<' => Some(ByteOrder::Little),
            '>' => Some(ByteOrder::Big),
            '|' | '=' => Some(ByteOrder::NATIVE),
            _ => None,
        };
        if order.is_some() {
            letter = next()?;
        }
        let kind = match letter {
            'b' => Kind::Bool,
            'i' => Kind::Int,
            'u' => Kind::Uint,
            'f' => Kind::Float,
            'c' => Kind::Complex,
            'V' => Kind::Void,
            _ => return Err(malformed("the kind is none of b, i, u, f, c and V")),
        };
        let digits = letters.as_str();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed("the kind has to be followed by a size in bytes"));
        }
        let size = digits
            .parse()
            .ok()
            .filter(|&size| match kind {
                Kind::Void => size > 0 && isize::try_from(size).is_ok(),
                kind => find(kind, size).is_some(),
            })
            .ok_or_else(|| malformed("there are no items of that kind and size"))?;
        Ok(Self::ordered(
            kind,
            size,
            order.unwrap_or(ByteOrder::NATIVE),
        ))
    }
}

impl fmt::Display for ItemType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}{}{}",
            self.order.letter(),
            self.kind.letter(),
            self.size
        )
    }
}
