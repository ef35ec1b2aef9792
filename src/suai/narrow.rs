//! The number formats of machine learning. NumPy has them by the package `ml_dtypes`, DLPack by codes; `typestr` has none.

use super::dlpack_type::DlpackType;

/// A number of a format that `typestr` has no letter for. One of fewer than 8 bits has a byte of its own, or is one of a pair
/// that has a byte, as in PyTorch's `float4_e2m1fn_x2`.
///
/// Source: DLPack 1.3, `DLDataTypeCode`; OCP Microscaling Formats 1.0; the names are those of `ml_dtypes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Narrow {
    /// The number of its row in the table, so that it is small.
    row: u8,
}

/// DLPack's code of complex numbers.
const COMPLEX: u8 = 5;

/// Name, DLPack's code, the bits of a number, and how many are in an element.
type Format = (&'static str, u8, u8, u16);

const FORMATS: [Format; 20] = [
    ("bfloat16", 4, 16, 1),
    ("complex32", COMPLEX, 32, 1),
    ("float8_e3m4", 7, 8, 1),
    ("float8_e4m3", 8, 8, 1),
    ("float8_e4m3b11fnuz", 9, 8, 1),
    ("float8_e4m3fn", 10, 8, 1),
    ("float8_e4m3fnuz", 11, 8, 1),
    ("float8_e5m2", 12, 8, 1),
    ("float8_e5m2fnuz", 13, 8, 1),
    ("float8_e8m0fnu", 14, 8, 1),
    ("float6_e2m3fn", 15, 6, 1),
    ("float6_e3m2fn", 16, 6, 1),
    ("float4_e2m1fn", 17, 4, 1),
    ("float4_e2m1fn_x2", 17, 4, 2),
    ("int4", 0, 4, 1),
    ("uint4", 1, 4, 1),
    ("int2", 0, 2, 1),
    ("uint2", 1, 2, 1),
    ("int1", 0, 1, 1),
    ("uint1", 1, 1, 1),
];

impl Narrow {
    /// The format of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::find(|format| format.0 == name)
    }

    /// The format of DLPack's type.
    pub(super) fn of_dlpack(dtype: DlpackType) -> Option<Self> {
        Self::find(|format| (format.1, format.2, format.3) == (dtype.code, dtype.bits, dtype.lanes))
    }

    fn find(is: impl Fn(&Format) -> bool) -> Option<Self> {
        let row = FORMATS.iter().position(is)?;
        Some(Self { row: row as u8 })
    }

    fn format(self) -> Format {
        FORMATS[usize::from(self.row)]
    }

    /// The name in `ml_dtypes` and PyTorch.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.format().0
    }

    /// DLPack's type.
    #[must_use]
    pub fn dlpack(self) -> DlpackType {
        let (_, code, bits, lanes) = self.format();
        DlpackType { code, bits, lanes }
    }

    /// Whether it is of two floating-point numbers.
    pub(super) fn is_complex(self) -> bool {
        self.dlpack().code == COMPLEX
    }

    /// The size in memory, in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        let dtype = self.dlpack();
        (usize::from(dtype.bits) * usize::from(dtype.lanes)).div_ceil(8)
    }
}
