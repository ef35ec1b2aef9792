//! The shares of several devices, and their access to each other's memory. The devices last for the process, so they are
//! made in child processes.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/devices.rs"]
mod listed;
#[path = "common/process.rs"]
mod process;

use std::ptr;

use common::{Context, MIB, NONE, OK, Result, device_desc, direct};
use level_zero_sys as sys;
use listed::{DEVICES, Device, PEER_ACCESS, TILES, description, enumerate, memory, properties};

#[test]
fn processors_and_memory_are_shared_equally() {
    process::alone_with("child_has_a_share", &[(DEVICES, "4+cpu"), (TILES, "2")]);
}

/// Allocates device memory in pieces that fit, until that fails; returns the result and the pieces.
fn exhaust(context: &Context, device: Device) -> (Result, u64, Vec<common::Memory>) {
    let size = memory(device) / 8;
    let mut found = Vec::new();
    loop {
        let (desc, mut pointer) = (device_desc(), ptr::null_mut());
        let result = ze!(zeMemAllocDevice(
            context.0,
            &raw const desc,
            size as usize,
            0,
            device,
            &raw mut pointer
        ));
        if result != OK {
            return (result, size * found.len() as u64, found);
        }
        found.push(pointer);
    }
}

/// Creates physical memory of an eighth of the device's memory, and destroys it.
fn create_physical(context: &Context, device: Device) -> Result {
    let desc = sys::ze_physical_mem_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
        size: (memory(device) as usize / 8).next_multiple_of(2 * MIB),
        ..Default::default()
    };
    let (mut desc, mut physical) = (desc, ptr::null_mut());
    let result = ze!(zePhysicalMemCreate(
        context.0,
        device,
        &raw mut desc,
        &raw mut physical
    ));
    if result == OK {
        ok!(zePhysicalMemDestroy(context.0, physical));
    }
    result
}

#[test]
#[ignore = "run by processors_and_memory_are_shared_equally"]
fn child_has_a_share() {
    let [gpus @ .., cpu] = &enumerate(None)[..] else {
        panic!("no devices");
    };
    let units = |device: Device| {
        let found = properties(device);
        found.numSlices * found.numSubslicesPerSlice * found.numEUsPerSubslice
    };
    for gpu in gpus {
        assert_eq!(memory(*gpu), memory(*cpu) / 4);
        assert_eq!(properties(*gpu).maxMemAllocSize, memory(*gpu) / 2);
        // A multiple of 16, like Intel's GPUs, and not less than its two tiles together.
        let share = |parts: u32| (units(*cpu) / parts).max(1).next_multiple_of(16);
        assert_eq!(units(*gpu), share(4).max(2 * share(8)));
        for tile in enumerate(Some(*gpu)) {
            assert_eq!(units(tile), share(8));
        }
    }
    // Untouched memory is only accounted for, but the machine's own memory is a limit, too.
    let context = Context::new();
    let exhausted = sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    let (result, total, pieces) = exhaust(&context, gpus[0]);
    assert_eq!(result, exhausted);
    assert!(total <= memory(gpus[0]));
    let tiles = enumerate(Some(gpus[0]));
    assert_eq!(
        exhaust(&context, tiles[0]).0,
        exhausted,
        "the whole device is full"
    );
    let physical = [0, 1].map(|gpu| create_physical(&context, gpus[gpu]));
    if cfg!(windows) {
        let unsupported = sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
        assert_eq!(physical, [unsupported; 2]);
    } else {
        assert_eq!(physical, [exhausted, OK], "for physical memory, too");
    }
    let (_, other, others) = exhaust(&context, gpus[1]);
    assert!(other > 0, "another device is not");
    for piece in pieces.into_iter().chain(others) {
        context.free(piece);
    }
    let (result, part, pieces) = exhaust(&context, tiles[0]);
    assert_eq!(result, exhausted);
    assert!(part > 0 && part <= memory(gpus[0]) / 2);
    let (_, other, others) = exhaust(&context, tiles[1]);
    assert!(other > 0 && part + other <= memory(gpus[0]));
    for piece in pieces.into_iter().chain(others) {
        context.free(piece);
    }
    // Once more, so that every byte was given back.
    assert_eq!(exhaust(&context, gpus[0]).1, total);
}

#[test]
fn memory_of_a_peer_is_accessible_or_refused_when_a_command_is_appended() {
    for (access, expected) in [("1", "accessible"), ("0", "refused")] {
        let output = process::alone_with(
            "child_uses_memory_of_a_peer",
            &[(DEVICES, "2+cpu"), (TILES, "2"), (PEER_ACCESS, access)],
        );
        assert!(output.contains(expected), "{output}");
    }
}

fn regular(context: &Context, device: Device) -> common::List {
    let desc = sys::ze_command_list_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
        ..Default::default()
    };
    let mut list = ptr::null_mut();
    ok!(zeCommandListCreate(
        context.0,
        device,
        &raw const desc,
        &raw mut list
    ));
    list
}

fn allocate(context: &Context, device: Device, shared: bool) -> common::Memory {
    let (desc, host, mut memory) = (device_desc(), common::host_desc(), ptr::null_mut());
    if shared {
        ok!(zeMemAllocShared(
            context.0,
            &raw const desc,
            &raw const host,
            MIB,
            0,
            device,
            &raw mut memory
        ));
    } else {
        ok!(zeMemAllocDevice(
            context.0,
            &raw const desc,
            MIB,
            0,
            device,
            &raw mut memory
        ));
    }
    memory
}

/// The result of a copy of `from` to `to`.
fn copy(list: common::List, to: common::Memory, from: common::Memory) -> Result {
    ze!(zeCommandListAppendMemoryCopy(
        list,
        to,
        from,
        MIB,
        NONE,
        0,
        ptr::null_mut()
    ))
}

#[test]
#[ignore = "run by memory_of_a_peer_is_accessible_or_refused_when_a_command_is_appended"]
fn child_uses_memory_of_a_peer() {
    let can_access = |device: Device, peer: Device| {
        let mut accessible = 7;
        ok!(zeDeviceCanAccessPeer(device, peer, &raw mut accessible));
        let mut out = sys::ze_device_p2p_properties_t {
            stype: sys::ZE_STRUCTURE_TYPE_DEVICE_P2P_PROPERTIES,
            ..Default::default()
        };
        ok!(zeDeviceGetP2PProperties(device, peer, &raw mut out));
        let flag = sys::ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS.0;
        assert_eq!(out.flags & flag != 0, accessible == 1);
        accessible == 1
    };
    let [first, second, cpu] = enumerate(None)[..] else {
        panic!("two GPUs and the CPU");
    };
    let tile = |device| enumerate(Some(device))[0];
    let peers = can_access(first, second);
    for (device, peer) in [
        (second, first),
        (first, cpu),
        (tile(first), second),
        (tile(first), tile(second)),
    ] {
        assert_eq!(can_access(device, peer), peers);
    }
    for (device, part) in [(first, first), (first, tile(first)), (tile(first), first)] {
        assert!(can_access(device, part));
    }
    let mut access = sys::ze_device_memory_access_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDeviceGetMemoryAccessProperties(first, &raw mut access));
    assert_eq!(access.sharedCrossDeviceAllocCapabilities != 0, peers);

    let context = Context::new();
    let host = context.alloc(common::Kind::Host, MIB);
    let unbound = allocate(&context, ptr::null_mut(), true);
    let refused = if peers {
        OK
    } else {
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT
    };
    for (list, is_immediate) in [
        (context.immediate_on(first, &common::queue_desc(0)), true),
        (regular(&context, first), false),
    ] {
        for shared in [false, true] {
            let [own, part, other, others_part] = [first, tile(first), second, tile(second)]
                .map(|device| allocate(&context, device, shared));
            for accessible in [own, part, host, unbound] {
                assert_eq!(copy(list, own, accessible), OK);
                assert_eq!(copy(list, accessible, own), OK);
            }
            for foreign in [other, others_part] {
                assert_eq!(copy(list, own, foreign), refused);
                assert_eq!(copy(list, foreign, host), refused);
                let filled = ze!(zeCommandListAppendMemoryFill(
                    list,
                    foreign,
                    ptr::from_ref(&7_u8).cast(),
                    1,
                    MIB,
                    NONE,
                    0,
                    ptr::null_mut()
                ));
                assert_eq!(filled, refused);
            }
            if direct() && !peers {
                let text = description();
                let kind = if shared { "shared" } else { "device" };
                let (before, after) = text
                    .split_once(&format!(" has no access to {kind} memory of "))
                    .unwrap();
                assert!(
                    before.contains(" 0 (") && after.contains(" 1.0 ("),
                    "{text}"
                );
            }
            if is_immediate {
                common::finish(&context, list);
            }
        }
        common::destroy(list);
    }
    println!("{}", if peers { "accessible" } else { "refused" });
}
