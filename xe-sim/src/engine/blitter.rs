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

/// MEM_COPY.
pub(super) fn copy(space: &AddressSpace, dwords: &[u32]) -> Result<(), PageFault> {
    let matrix = dwords[0] >> 17 & 3;
    let pages = dwords[0] >> 19 & 1 == 1;
    let width = field(dwords[1], WIDTH) * if pages { PAGE_COPY_UNIT } else { 1 };
    let height = match matrix {
        0 => 1,
        1 => field(dwords[2], HEIGHT),
        _ => not_simulated(format_args!("MEM_COPY of type {matrix}")),
    };
    let (from, to) = (wide(dwords, 5), wide(dwords, 7));
    let (from_pitch, to_pitch) = (field(dwords[3], HEIGHT), field(dwords[4], HEIGHT));
    for row in 0..height {
        space.copy(to + row * to_pitch, from + row * from_pitch, width)?;
    }
    Ok(())
}

/// MEM_SET.
pub(super) fn set(space: &AddressSpace, dwords: &[u32]) -> Result<(), PageFault> {
    let matrix = dwords[0] >> 17 & 3;
    let width = field(dwords[1], WIDTH);
    let height = match matrix {
        0 => 1,
        1 => field(dwords[2], HEIGHT),
        _ => not_simulated(format_args!("MEM_SET of type {matrix}")),
    };
    let pitch = field(dwords[3], HEIGHT);
    let to = wide(dwords, 4);
    let value = (dwords[6] >> 24) as u8;
    for row in 0..height {
        space.fill(to + row * pitch, &[value], width)?;
    }
    Ok(())
}

/// The bytes per pixel, from the field "color depth".
fn pixel(header: u32) -> u64 {
    match header >> 19 & 7 {
        depth @ 0..=3 => 1 << depth,
        4 => 12,
        5 => 16,
        depth => not_simulated(format_args!("a pixel of color depth {depth}")),
    }
}

/// Splits a dword into x (low half) and y (high half).
fn point(dword: u32) -> (u64, u64) {
    (u64::from(dword & 0xffff), u64::from(dword >> 16))
}

/// Aborts unless the surface is linear. The tiling field has the same position in all of these commands.
fn check_linear(name: &str, dword: u32) {
    let tiling = dword >> 30;
    if tiling != 0 {
        not_simulated(format_args!("{name} with tiling {tiling}"));
    }
}

/// XY_BLOCK_COPY_BLT.
pub(super) fn block_copy(space: &AddressSpace, dwords: &[u32]) -> Result<(), PageFault> {
    check_linear("XY_BLOCK_COPY_BLT", dwords[1]);
    check_linear("XY_BLOCK_COPY_BLT", dwords[8]);
    let bytes = pixel(dwords[0]);
    let (to_pitch, from_pitch) = (field(dwords[1], HEIGHT), field(dwords[8], HEIGHT));
    let (left, top) = point(dwords[2]);
    let (right, bottom) = point(dwords[3]);
    let (from_left, from_top) = point(dwords[7]);
    let (to, from) = (wide(dwords, 4), wide(dwords, 9));
    for row in 0..bottom.saturating_sub(top) {
        space.copy(
            to + (top + row) * to_pitch + left * bytes,
            from + (from_top + row) * from_pitch + from_left * bytes,
            right.saturating_sub(left) * bytes,
        )?;
    }
    Ok(())
}

/// XY_FAST_COLOR_BLT.
pub(super) fn color(space: &AddressSpace, dwords: &[u32]) -> Result<(), PageFault> {
    check_linear("XY_FAST_COLOR_BLT", dwords[1]);
    let bytes = pixel(dwords[0]);
    let pitch = field(dwords[1], HEIGHT);
    let (left, top) = point(dwords[2]);
    let (right, bottom) = point(dwords[3]);
    let to = wide(dwords, 4);
    let pattern: Vec<u8> = dwords[7..11]
        .iter()
        .flat_map(|dword| dword.to_le_bytes())
        .collect();
    for row in top..bottom {
        let width = right.saturating_sub(left) * bytes;
        space.fill(
            to + row * pitch + left * bytes,
            &pattern[..bytes as usize],
            width,
        )?;
    }
    Ok(())
}
