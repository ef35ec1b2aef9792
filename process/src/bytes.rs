//! Numbers of bytes in messages.

use std::fmt;

/// A number of bytes that is shown rounded in the largest binary unit, and exactly beside it.
///
/// ```
/// use zeusm_process::Bytes;
///
/// assert_eq!(Bytes(1000).to_string(), "1000 bytes");
/// assert_eq!(Bytes(3 << 19).to_string(), "1.5 MiB (1572864 bytes)");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let Self(bytes) = *self;
        let Some(last) = (bytes.max(1).ilog2() / 10).checked_sub(1) else {
            return write!(formatter, "{bytes} bytes");
        };
        let mut unit = last as usize;
        // In tenths, of which there are fewer than 10240 of the largest unit.
        let mut tenths = (u128::from(bytes) * 10 + (1 << (10 * last + 9))) >> (10 * (last + 1));
        if tenths == 10240 && unit + 1 < UNITS.len() {
            (unit, tenths) = (unit + 1, 10);
        }
        write!(formatter, "{}", tenths / 10)?;
        if tenths % 10 != 0 {
            write!(formatter, ".{}", tenths % 10)?;
        }
        write!(formatter, " {} ({bytes} bytes)", UNITS[unit])
    }
}
