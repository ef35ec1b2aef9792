//! The number formats of machine learning. NumPy has them by the package `ml_dtypes`, DLPack by codes; `typestr` has none.

/// A number of a format that `typestr` has no letter for. One of fewer than 8 bits has a byte of its own.
///
/// Source: DLPack 1.3, `DLDataTypeCode`; OCP Microscaling Formats 1.0; the names are those of `ml_dtypes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Narrow {
    /// The number of its row in the table, so that it is small.
    row: u8,
}

/// DLPack's code of complex numbers.
const COMPLEX: u8 = 5;

/// Name, DLPack's code, and the bits of a number.
type Format = (&'static str, u8, u8);

const FORMATS: [Format; 19] = [
    ("bfloat16", 4, 16),
    ("complex32", COMPLEX, 32),
    ("float8_e3m4", 7, 8),
    ("float8_e4m3", 8, 8),
    ("float8_e4m3b11fnuz", 9, 8),
    ("float8_e4m3fn", 10, 8),
    ("float8_e4m3fnuz", 11, 8),
    ("float8_e5m2", 12, 8),
    ("float8_e5m2fnuz", 13, 8),
    ("float8_e8m0fnu", 14, 8),
    ("float6_e2m3fn", 15, 6),
    ("float6_e3m2fn", 16, 6),
    ("float4_e2m1fn", 17, 4),
    ("int4", 0, 4),
    ("uint4", 1, 4),
    ("int2", 0, 2),
    ("uint2", 1, 2),
    ("int1", 0, 1),
    ("uint1", 1, 1),
];

impl Narrow {
    /// The format of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::find(|format| format.0 == name)
    }

    /// The format of DLPack's code and bits.
    pub(super) fn coded(code: u8, bits: u8) -> Option<Self> {
        Self::find(|format| (format.1, format.2) == (code, bits))
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

    /// DLPack's code, and the bits of a number.
    #[must_use]
    pub fn dlpack(self) -> (u8, u8) {
        let (_, code, bits) = self.format();
        (code, bits)
    }

    /// Whether it is of two floating-point numbers.
    pub(super) fn is_complex(self) -> bool {
        self.dlpack().0 == COMPLEX
    }

    /// The size in memory, in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        usize::from(self.dlpack().1).div_ceil(8)
    }
}
