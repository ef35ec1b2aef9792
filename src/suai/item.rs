//! The type of an array's items: `typestr`, and its names in other protocols.

use std::ffi::{c_long, c_ulong};
use std::fmt;
use std::str::FromStr;

use super::error::Error;

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
    /// A number of a format that `typestr` has no letter for, by the number of the format: `typestr` shows it as untyped bytes, as
    /// `ml_dtypes` does. One of fewer than 8 bits has a byte of its own, or is one of a pair that has a byte, as in PyTorch's
    /// `float4_e2m1fn_x2`.
    Narrow(u8),
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
}

/// DLPack's description of an item (`DLDataType`).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DlpackType {
    /// `DLDataTypeCode`: 0 int, 1 unsigned int, 2 float, 5 complex, 6 bool; formats of machine learning have others.
    pub code: u8,
    /// The bits of one item.
    pub bits: u8,
    /// The numbers in one item: 1, or 2 of half a byte each.
    pub lanes: u16,
}

/// DLPack's code of complex numbers.
const COMPLEX: u8 = 5;

impl DlpackType {
    /// Whether the numbers fill the bytes of an item, without padding.
    #[must_use]
    pub(crate) fn fills_bytes(self) -> bool {
        (usize::from(self.bits) * usize::from(self.lanes)).is_multiple_of(8)
    }
}

/// An item with a name.
struct Known {
    kind: Kind,
    /// In bytes.
    size: usize,
    /// NumPy's, or that of `ml_dtypes` and PyTorch.
    name: &'static str,
    /// The code in the buffer protocol (PEP 3118) in standard size; `None` for items that have no standard size.
    code: Option<&'static str>,
    /// `None` for an item of too many bits.
    dlpack: Option<DlpackType>,
}

/// An item that NumPy has.
const fn known(kind: Kind, size: usize, name: &'static str, code: Option<&'static str>) -> Known {
    let dlpack = match kind {
        _ if size >= 32 => None,
        Kind::Int => Some(0),
        Kind::Uint => Some(1),
        Kind::Float => Some(2),
        Kind::Complex => Some(COMPLEX),
        Kind::Bool => Some(6),
        Kind::Void | Kind::Narrow(_) => None,
    };
    let dlpack = match dlpack {
        Some(code) => Some(DlpackType {
            code,
            bits: size as u8 * 8,
            lanes: 1,
        }),
        None => None,
    };
    Known {
        kind,
        size,
        name,
        code,
        dlpack,
    }
}

/// A format of machine learning, by its number, name, DLPack's code, the bits of a number, and how many are in an element.
const fn narrow(number: u8, name: &'static str, code: u8, bits: u8, lanes: u16) -> Known {
    Known {
        kind: Kind::Narrow(number),
        size: (bits as usize * lanes as usize).div_ceil(8),
        name,
        code: None,
        dlpack: Some(DlpackType { code, bits, lanes }),
    }
}

/// All items but untyped bytes, which may have any size.
///
/// Source: DLPack 1.3, `DLDataTypeCode`; OCP Microscaling Formats 1.0; the names are those of NumPy and `ml_dtypes`.
const KNOWN: [Known; 36] = [
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
    narrow(0, "bfloat16", 4, 16, 1),
    narrow(1, "complex32", COMPLEX, 32, 1),
    narrow(2, "float8_e3m4", 7, 8, 1),
    narrow(3, "float8_e4m3", 8, 8, 1),
    narrow(4, "float8_e4m3b11fnuz", 9, 8, 1),
    narrow(5, "float8_e4m3fn", 10, 8, 1),
    narrow(6, "float8_e4m3fnuz", 11, 8, 1),
    narrow(7, "float8_e5m2", 12, 8, 1),
    narrow(8, "float8_e5m2fnuz", 13, 8, 1),
    narrow(9, "float8_e8m0fnu", 14, 8, 1),
    narrow(10, "float6_e2m3fn", 15, 6, 1),
    narrow(11, "float6_e3m2fn", 16, 6, 1),
    narrow(12, "float4_e2m1fn", 17, 4, 1),
    narrow(13, "float4_e2m1fn_x2", 17, 4, 2),
    narrow(14, "int4", 0, 4, 1),
    narrow(15, "uint4", 1, 4, 1),
    narrow(16, "int2", 0, 2, 1),
    narrow(17, "uint2", 1, 2, 1),
    narrow(18, "int1", 0, 1, 1),
    narrow(19, "uint1", 1, 1, 1),
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
        KNOWN.iter().find(|known| known.name == name).map(Self::of)
    }

    /// The item of a DLPack type; a number of fewer than 8 bits has a byte of its own.
    #[must_use]
    pub fn of_dlpack(dtype: DlpackType) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.dlpack == Some(dtype));
        known.map(Self::of)
    }

    fn of(known: &Known) -> Self {
        Self::ordered(known.kind, known.size, ByteOrder::NATIVE)
    }

    /// Whether it is of a format that `typestr` has no letter for.
    #[must_use]
    pub fn is_narrow(self) -> bool {
        matches!(self.kind, Kind::Narrow(_))
    }

    /// Whether it is of two floating-point numbers.
    pub(super) fn is_complex(self) -> bool {
        let dlpack = self.known().and_then(|known| known.dlpack);
        self.kind == Kind::Complex || dlpack.is_some_and(|dtype| dtype.code == COMPLEX)
    }

    fn known(self) -> Option<&'static Known> {
        find(self.kind, self.size)
    }

    /// The unsigned integer of the same size.
    #[must_use]
    pub fn bits(self) -> Option<Self> {
        find(Kind::Uint, self.size).map(Self::of)
    }

    /// The name in NumPy, or in `ml_dtypes` and PyTorch, whatever the order; `None` for untyped bytes.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.known().map(|known| known.name)
    }

    /// Whether it is a number of a standard size, which also devices compute with.
    #[must_use]
    pub fn is_standard(self) -> bool {
        self.known().is_some_and(|known| known.code.is_some())
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
        let code = self.known().and_then(|known| known.code);
        let code = code.ok_or_else(|| {
            let narrow = self.name().filter(|_| self.is_narrow());
            Error::NoFormat(narrow.map_or_else(|| self.to_string(), str::to_owned))
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
        let dtype = self.known().and_then(|known| known.dlpack);
        dtype.filter(|_| self.order.is_native())
    }
}

/// Whether C's `long double` has 16 bytes.
const HAS_LONG_DOUBLE_16: bool = cfg!(unix);

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
