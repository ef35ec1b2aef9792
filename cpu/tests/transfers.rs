//! Copies, fills and region copies, compared with a simple implementation.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;

use std::ptr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{Context, KINDS, Kind, MIB, Memory, NONE, OK, Result, bytes, bytes_mut, pattern};
use level_zero_sys as sys;

/// Bytes around a destination that must stay as they are.
const GUARD: usize = 64;

/// Sizes around the thresholds of the implementation: vectors, parts, streaming.
const SIZES: [usize; 16] = [
    0,
    1,
    63,
    64,
    65,
    4095,
    4097,
    MIB - 1,
    MIB,
    MIB + 1,
    2 * MIB + 77,
    8 * MIB + 4095,
    16 * MIB - 1,
    16 * MIB,
    16 * MIB + 65,
    33 * MIB + 12_345,
];

#[test]
fn copies_move_every_byte_and_no_other() {
    let context = Context::new();
    let room = 34 * MIB;
    let source = pattern(room, 1);
    let from = context.alloc(Kind::Device, room);
    bytes_mut(from, room).copy_from_slice(&source);
    let to = context.alloc(Kind::Shared, room);
    let list = context.immediate(0);
    for size in SIZES {
        for (at, start) in [(64, 0), (67, 64), (4096, 1), (4097, 4096)] {
            let end = at + size;
            bytes_mut(to, end + GUARD).fill(0xCC);
            let destination = to.wrapping_byte_add(at);
            common::copy(
                list,
                destination,
                from.wrapping_byte_add(start),
                size,
                NONE,
                &[],
            );
            common::finish(&context, list);
            let to = bytes(to, end + GUARD);
            assert!(
                to[at..end] == source[start..start + size],
                "{size} {at} {start}"
            );
            assert_eq!(to[at - GUARD..at], [0xCC; GUARD], "{size} {at}");
            assert_eq!(to[end..], [0xCC; GUARD], "{size} {at}");
        }
    }
    common::destroy(list);
    context.free(from);
    context.free(to);
}

#[test]
fn copies_join_all_kinds_and_plain_memory() {
    let context = Context::new();
    let other = Context::new();
    let size = 3 * MIB + 5;
    let mut plain = pattern(size, 7);
    let source = plain.clone();
    let list = context.immediate(0);
    let chain: Vec<Memory> = KINDS
        .iter()
        .flat_map(|kind| [context.alloc(*kind, size), other.alloc(*kind, size)])
        .collect();
    let mut from: *const std::ffi::c_void = plain.as_ptr().cast();
    for memory in &chain {
        common::copy(list, *memory, from, size, NONE, &[]);
        ok!(zeCommandListAppendBarrier(list, NONE, 0, ptr::null_mut()));
        from = *memory;
    }
    common::finish(&context, list);
    plain.fill(0);
    ok!(zeCommandListAppendMemoryCopyFromContext(
        list,
        plain.as_mut_ptr().cast(),
        other.0,
        from,
        size,
        NONE,
        0,
        ptr::null_mut(),
    ));
    common::finish(&context, list);
    assert!(plain == source);
    for pair in chain.chunks(2) {
        context.free(pair[0]);
        other.free(pair[1]);
    }
    common::destroy(list);
}

#[test]
fn overlapping_copies_are_moves() {
    let context = Context::new();
    let size = 20 * MIB;
    let source = pattern(size, 3);
    let memory = context.alloc(Kind::Shared, size);
    let list = context.immediate(0);
    for (to, from) in [(0, 1), (1, 0), (0, 5 * MIB), (5 * MIB, 0), (4096, 0)] {
        bytes_mut(memory, size).copy_from_slice(&source);
        let length = size - to.max(from);
        let start = unsafe { memory.byte_add(from) };
        common::copy(
            list,
            unsafe { memory.byte_add(to) },
            start,
            length,
            NONE,
            &[],
        );
        common::finish(&context, list);
        assert!(
            bytes(memory, size)[to..to + length] == source[from..from + length],
            "{to} {from}"
        );
    }
    common::destroy(list);
    context.free(memory);
}

#[test]
fn fills_repeat_their_pattern() {
    let context = Context::new();
    let room = 34 * MIB;
    let memory = context.alloc(Kind::Shared, room);
    let list = context.immediate(0);
    for power in 0..=12 {
        let tile = pattern(1 << power, 11);
        let wanted = tile.repeat(room / tile.len());
        for size in SIZES {
            let size = size / tile.len() * tile.len();
            let at = tile.len().max(GUARD);
            let end = at + size;
            bytes_mut(memory, end + GUARD).fill(0xCC);
            common::fill(list, memory.wrapping_byte_add(at), &tile, size, NONE, &[]);
            common::finish(&context, list);
            let all = bytes(memory, end + GUARD);
            assert!(all[at..end] == wanted[..size], "{power} {size}");
            assert_eq!(all[at - GUARD..at], [0xCC; GUARD], "{power} {size}");
            assert_eq!(all[end..], [0xCC; GUARD], "{power} {size}");
        }
    }
    common::destroy(list);
    context.free(memory);
}

#[test]
fn bad_copies_and_fills_are_refused_and_change_nothing() {
    let context = Context::new();
    let memory = context.alloc(Kind::Shared, 4096);
    let other = context.alloc(Kind::Shared, 4096);
    bytes_mut(memory, 4096).fill(1);
    let list = context.immediate(0);
    let copy = |to: Memory, from: Memory, size: usize| {
        ze!(zeCommandListAppendMemoryCopy(
            list,
            to,
            from,
            size,
            NONE,
            0,
            ptr::null_mut()
        ))
    };
    let size = sys::ZE_RESULT_ERROR_INVALID_SIZE;
    assert_eq!(copy(memory, other, 4097), size);
    assert_eq!(copy(unsafe { memory.byte_add(4000) }, other, 97), size);
    assert_eq!(copy(other, unsafe { memory.byte_add(1) }, 4096), size);
    assert_eq!(copy(memory, other, usize::MAX), size);
    let fill = |to: Memory, width: usize, length: usize| {
        let zeros = [0_u8; 8192];
        ze!(zeCommandListAppendMemoryFill(
            list,
            to,
            zeros.as_ptr().cast(),
            width,
            length,
            NONE,
            0,
            ptr::null_mut(),
        ))
    };
    assert_eq!(fill(memory, 1, 4097), size);
    assert_eq!(fill(memory, 0, 64), size, "no pattern");
    assert_eq!(fill(memory, 3, 63), size, "not a power of two");
    assert_eq!(
        fill(memory, 8192, 8192),
        size,
        "longer than the longest pattern"
    );
    assert_eq!(fill(memory, 8, 63), size, "not a multiple");
    assert_eq!(
        fill(unsafe { memory.byte_add(4) }, 8, 64),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT
    );
    common::finish(&context, list);
    assert_eq!(bytes(memory, 4096), [1; 4096]);
    common::destroy(list);
    context.free(memory);
    context.free(other);
}

/// A box in an array of `pitch` by `rows` by `slices` bytes.
#[derive(Clone, Copy, Debug)]
struct Array {
    pitch: u32,
    rows: u32,
    slices: u32,
}

impl Array {
    fn size(self) -> usize {
        (self.pitch * self.rows * self.slices) as usize
    }

    fn index(self, x: u32, y: u32, z: u32) -> usize {
        ((z * self.rows + y) * self.pitch + x) as usize
    }
}

fn region(origin: [u32; 3], size: [u32; 3]) -> sys::ze_copy_region_t {
    sys::ze_copy_region_t {
        originX: origin[0],
        originY: origin[1],
        originZ: origin[2],
        width: size[0],
        height: size[1],
        depth: size[2],
    }
}

fn copy_region(
    list: common::List,
    (to, to_array, to_region): (Memory, Array, sys::ze_copy_region_t),
    (from, from_array, from_region): (Memory, Array, sys::ze_copy_region_t),
) -> Result {
    ze!(zeCommandListAppendMemoryCopyRegion(
        list,
        to,
        &raw const to_region,
        to_array.pitch,
        to_array.pitch * to_array.rows,
        from,
        &raw const from_region,
        from_array.pitch,
        from_array.pitch * from_array.rows,
        NONE,
        0,
        ptr::null_mut(),
    ))
}

#[test]
fn regions_are_copied_as_boxes() {
    let context = Context::new();
    let small = Array {
        pitch: 37,
        rows: 11,
        slices: 5,
    };
    let large = Array {
        pitch: 2048,
        rows: 700,
        slices: 9,
    };
    let list = context.immediate(0);
    for (to_array, from_array, size) in [
        (small, small, [30, 9, 4]),
        (large, small, [37, 11, 5]),
        (small, large, [1, 11, 1]),
        (large, large, [1999, 650, 7]),
        (large, large, [2000, 1, 1]),
    ] {
        let (at, start) = ([0, 0, 1], [0, 0, 0]);
        let source = pattern(from_array.size(), 21);
        let (to, from) = (
            context.alloc(Kind::Shared, to_array.size() + to_array.index(0, 0, 1)),
            context.alloc(Kind::Device, from_array.size()),
        );
        let at = if to_array.slices > size[2] {
            at
        } else {
            [0, 0, 0]
        };
        bytes_mut(from, from_array.size()).copy_from_slice(&source);
        bytes_mut(to, to_array.size()).fill(0);
        let mut wanted = vec![0; to_array.size()];
        for z in 0..size[2] {
            for y in 0..size[1] {
                for x in 0..size[0] {
                    wanted[to_array.index(at[0] + x, at[1] + y, at[2] + z)] =
                        source[from_array.index(start[0] + x, start[1] + y, start[2] + z)];
                }
            }
        }
        let result = copy_region(
            list,
            (to, to_array, region(at, size)),
            (from, from_array, region(start, size)),
        );
        assert_eq!(result, OK, "{to_array:?} {from_array:?} {size:?}");
        common::finish(&context, list);
        assert!(
            bytes(to, to_array.size()) == wanted,
            "{to_array:?} {from_array:?} {size:?}"
        );
        context.free(to);
        context.free(from);
    }
    common::destroy(list);
}

#[test]
fn two_dimensions_need_no_depth() {
    let context = Context::new();
    let array = Array {
        pitch: 100,
        rows: 10,
        slices: 1,
    };
    let memory = context.alloc(Kind::Shared, array.size());
    let source = pattern(array.size(), 5);
    bytes_mut(memory, array.size()).copy_from_slice(&source);
    let list = context.immediate(0);
    // Left half to right half: the spans overlap, the boxes do not.
    let (left, right) = (
        region([0, 0, 0], [50, 10, 0]),
        region([50, 0, 0], [50, 10, 0]),
    );
    assert_eq!(
        copy_region(list, (memory, array, right), (memory, array, left)),
        OK
    );
    common::finish(&context, list);
    for row in bytes(memory, array.size()).chunks(100) {
        assert_eq!(row[..50], row[50..]);
    }
    assert_eq!(
        copy_region(list, (memory, array, left), (memory, array, right)),
        OK
    );
    let overlapping = region([49, 0, 0], [50, 10, 0]);
    assert_eq!(
        copy_region(list, (memory, array, overlapping), (memory, array, left)),
        sys::ZE_RESULT_ERROR_OVERLAPPING_REGIONS
    );
    common::destroy(list);
    context.free(memory);
}

#[test]
fn bad_regions_are_refused() {
    let context = Context::new();
    let array = Array {
        pitch: 64,
        rows: 8,
        slices: 2,
    };
    let (to, from) = (
        context.alloc(Kind::Shared, array.size()),
        context.alloc(Kind::Shared, array.size()),
    );
    let list = context.immediate(0);
    let whole = region([0, 0, 0], [64, 8, 2]);
    let size = sys::ZE_RESULT_ERROR_INVALID_SIZE;
    for (bad, why) in [
        (region([0, 0, 0], [63, 8, 2]), "another size"),
        (region([1, 0, 0], [64, 8, 2]), "past the end"),
        (region([0, 0, 1], [64, 8, 2]), "past the end"),
        (
            region([u32::MAX, u32::MAX, u32::MAX], [64, 8, 2]),
            "far past the end",
        ),
    ] {
        assert_eq!(
            copy_region(list, (to, array, bad), (from, array, whole)),
            size,
            "{why}"
        );
        assert_eq!(
            copy_region(list, (to, array, whole), (from, array, bad)),
            size,
            "{why}"
        );
    }
    let huge = region([0, 0, 0], [u32::MAX, u32::MAX, u32::MAX]);
    assert_eq!(
        copy_region(list, (to, array, huge), (from, array, huge)),
        size
    );
    let narrow = Array {
        pitch: 32,
        rows: 8,
        slices: 2,
    };
    assert_eq!(
        copy_region(list, (to, narrow, whole), (from, array, whole)),
        size,
        "rows overlap"
    );
    let nothing = region([0, 0, 0], [0, 8, 2]);
    assert_eq!(
        copy_region(list, (to, array, nothing), (from, array, nothing)),
        OK
    );
    common::finish(&context, list);
    common::destroy(list);
    context.free(to);
    context.free(from);
}

#[test]
fn a_region_of_width_0_takes_no_time() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let context = Context::new();
        let memory = context.alloc(Kind::Shared, 64);
        let list = context.immediate(0);
        let array = Array {
            pitch: 0,
            rows: 0,
            slices: 0,
        };
        let nothing = (memory, array, region([0; 3], [0, u32::MAX, u32::MAX]));
        let less = (memory, array, region([0; 3], [0, u32::MAX, 1]));
        assert_eq!(copy_region(list, nothing, nothing), OK);
        let size = sys::ZE_RESULT_ERROR_INVALID_SIZE;
        assert_eq!(copy_region(list, nothing, less), size);
        common::finish(&context, list);
        common::destroy(list);
        context.free(memory);
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).unwrap();
}
