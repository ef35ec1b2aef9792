#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn headers_as_the_driver_writes_them() {
    let known = [
        (0x0500_0000, "MI_BATCH_BUFFER_END", 1),
        (0x1040_0002, "MI_STORE_DATA_IMM", 4),
        (0x1888_0101, "MI_BATCH_BUFFER_START", 3),
        (0x0e00_8003, "MI_SEMAPHORE_WAIT", 5),
        (0x5680_0008, "MEM_COPY", 10),
        (0x7208_0026, "COMPUTE_WALKER", 40),
        (0x7a00_0004, "PIPE_CONTROL", 6),
        (0x6904_0000, "PIPELINE_SELECT", 1),
        (0xac00_0003, "RESOURCE_BARRIER", 5),
    ];
    for (header, name, dwords) in known {
        let row = decode(header);
        assert_eq!(
            row.map(|row| (row.name, row.dwords(header))),
            Some((name, dwords))
        );
    }
    assert!(decode(0xdead_beef).is_none());
}

fn refusal(header: u32) -> Option<String> {
    decode(header).and_then(|entry| entry.wrong_length(header))
}

/// Decodes a command with these dwords, and zeroes in the others.
fn unknown_bits(header: u32, others: &[(usize, u32)]) -> Option<String> {
    let entry = decode(header).unwrap();
    let mut dwords = vec![0; entry.dwords(header)];
    dwords[0] = header;
    for (at, bits) in others {
        dwords[*at] = *bits;
    }
    entry.unknown_bits(&dwords)
}

#[test]
fn the_bits_that_the_driver_sets_are_known() {
    for (header, others) in [
        (0x0500_0000, &[][..]),
        (0x0d00_0003, &[]),
        (0x0e00_9003, &[]),
        (0x0e00_d003, &[]),
        (0x1000_0402, &[(1, 0xffff_fff8)]),
        (0x1102_0001, &[]),
        (0x1202_0002, &[]),
        (0x1300_0203, &[]),
        (0x1300_4303, &[(1, 0xffff_fff8)]),
        (0x1503_0001, &[]),
        (0x1880_0101, &[]),
        (0x5680_0408, &[]),
        (0x5682_0408, &[(9, 0x3000_0018)]),
        (0x56c0_0405, &[(6, 0x0300_0018)]),
        (0x6101_0014, &[]),
        (0x7208_0026, &[(4, 0xae44_0001), (27, 0x1007)]),
        (0x7a00_0a04, &[(1, 0x0010_4420)]),
        (0x7a00_0204, &[(1, 0x0010_0400)]),
    ] {
        assert_eq!(unknown_bits(header, others), None, "{header:#x}");
    }
}

#[test]
fn bits_that_change_a_command_are_not_simulated() {
    for (header, others, reason) in [
        (
            0x0500_8000,
            &[][..],
            "MI_BATCH_BUFFER_END with the bits 0x8000 in dword 0",
        ),
        (
            0x0e00_1003,
            &[],
            "MI_SEMAPHORE_WAIT without the bits 0x8000 in dword 0",
        ),
        (
            0x0e02_9003,
            &[],
            "MI_SEMAPHORE_WAIT with the bits 0x20000 in dword 0",
        ),
        (
            0x0e04_9003,
            &[],
            "MI_SEMAPHORE_WAIT with the bits 0x40000 in dword 0",
        ),
        (
            0x1000_0c02,
            &[],
            "MI_STORE_DATA_IMM with the bits 0x800 in dword 0",
        ),
        (
            0x1222_0002,
            &[],
            "MI_STORE_REGISTER_MEM with the bits 0x200000 in dword 0",
        ),
        (
            0x1320_4003,
            &[],
            "MI_FLUSH_DW with the bits 0x200000 in dword 0",
        ),
        (
            0x1300_4003,
            &[(1, 4)],
            "MI_FLUSH_DW with the bits 0x4 in dword 1",
        ),
        (
            0x1880_0001,
            &[],
            "MI_BATCH_BUFFER_START without the bits 0x100 in dword 0",
        ),
        (
            0x1880_8101,
            &[],
            "MI_BATCH_BUFFER_START with the bits 0x8000 in dword 0",
        ),
        (0x56c8_0005, &[], "MEM_SET with the bits 0x80000 in dword 0"),
        (
            0x7208_0126,
            &[],
            "COMPUTE_WALKER with the bits 0x100 in dword 0",
        ),
        (
            0x7208_0026,
            &[(10, 1)],
            "COMPUTE_WALKER with the bits 0x1 in dword 10",
        ),
        (
            0x7a00_0004,
            &[(1, 1 << 24)],
            "PIPE_CONTROL with the bits 0x1000000 in dword 1",
        ),
    ] {
        assert_eq!(unknown_bits(header, others).as_deref(), Some(reason));
    }
}

#[test]
fn only_the_lengths_that_are_known_are_simulated() {
    let known = [
        0x1040_0002, // MI_STORE_DATA_IMM of 32 bits
        0x1060_0003, // MI_STORE_DATA_IMM of 64 bits
        0x1100_0003, // MI_LOAD_REGISTER_IMM of two registers
        0x1300_0002, // MI_FLUSH_DW without the high half of its data
        0x7208_0026,
        0x7a00_0004,
    ];
    for header in known {
        assert_eq!(refusal(header), None, "{header:#x}");
    }
    for (header, reason) in [
        (0x1888_0000, "MI_BATCH_BUFFER_START with 2 dwords"),
        (0x1060_0002, "MI_STORE_DATA_IMM with 4 dwords"),
        (0x1040_03ff, "MI_STORE_DATA_IMM with 1025 dwords"),
        (0x1100_0002, "MI_LOAD_REGISTER_IMM with 4 dwords"),
        (0x1300_0001, "MI_FLUSH_DW with 3 dwords"),
        (0x5680_0007, "MEM_COPY with 9 dwords"),
        (0x7208_0025, "COMPUTE_WALKER with 39 dwords"),
    ] {
        assert_eq!(refusal(header).as_deref(), Some(reason));
    }
}
