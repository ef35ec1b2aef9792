//! The copy engine's commands.
//!
//! Fields: PRM for Lunar Lake, volume 2a; the driver's public header `hw_cmds_generated_xe2_hpg_core.inl`.

use super::command::wide;
use crate::memory::{AddressSpace, PageFault};
use crate::report::not_simulated;

/// Masks of the width and height fields, which hold the value minus one.
const WIDTH: u32 = 0xff_ffff;
const HEIGHT: u32 = 0x3_ffff;
/// The unit of the width in page copy mode, in bytes.
const PAGE_COPY_UNIT: u64 = 256;

fn field(dword: u32, mask: u32) -> u64 {
    u64::from(dword & mask) + 1
}

/// The rows of a matrix, or the one of a linear range.
fn height(command: &str, dwords: &[u32]) -> u64 {
    match dwords[0] >> 17 & 3 {
        0 => 1,
        1 => field(dwords[2], HEIGHT),
        other => not_simulated(format_args!("{command} of type {other}")),
    }
}

/// MEM_COPY.
pub(super) fn copy(space: &AddressSpace, dwords: &[u32]) -> Result<(), PageFault> {
    let pages = dwords[0] >> 19 & 1 == 1;
    let width = field(dwords[1], WIDTH) * if pages { PAGE_COPY_UNIT } else { 1 };
    let height = height("MEM_COPY", dwords);
    let (from, to) = (wide(dwords, 5), wide(dwords, 7));
    let (from_pitch, to_pitch) = (field(dwords[3], HEIGHT), field(dwords[4], HEIGHT));
    for row in 0..height {
        space.copy(to + row * to_pitch, from + row * from_pitch, width)?;
    }
    Ok(())
}

/// MEM_SET.
pub(super) fn set(space: &AddressSpace, dwords: &[u32]) -> Result<(), PageFault> {
    let width = field(dwords[1], WIDTH);
    let height = height("MEM_SET", dwords);
    let pitch = field(dwords[3], HEIGHT);
    let to = wide(dwords, 4);
    let value = (dwords[6] >> 24) as u8;
    for row in 0..height {
        space.fill(to + row * pitch, &[value], width)?;
    }
    Ok(())
}
