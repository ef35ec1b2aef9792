//! System management: the memory of a device. The calls go to this library itself, as Debian's loader is older than
//! `zesInit`.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/devices.rs"]
mod listed;
#[path = "common/process.rs"]
mod process;

use std::ffi::CString;
use std::{iter, ptr};

use common::{Context, Kind, OK, devices};
use level_zero_sys as sys;
use level_zero_sys::extensions;
use listed::properties;

fn symbol<F: Copy>(name: &str) -> F {
    let library = unsafe { sys::load_from(common::library_path()) }.unwrap();
    unsafe { library.symbol(&CString::new(name).unwrap()) }.unwrap()
}

type List<P, T> = unsafe extern "C" fn(P, *mut u32, *mut T) -> sys::ze_result_t;
type Fill<H, T> = unsafe extern "C" fn(H, *mut T) -> sys::ze_result_t;

fn all<P: Copy, T: Copy>(list: List<P, T>, parent: P, empty: T) -> Vec<T> {
    let mut count = 0;
    assert_eq!(unsafe { list(parent, &mut count, ptr::null_mut()) }, OK);
    let mut items = vec![empty; count as usize];
    assert_eq!(unsafe { list(parent, &mut count, items.as_mut_ptr()) }, OK);
    items
}

fn managed_devices() -> Vec<sys::zes_device_handle_t> {
    let init: unsafe extern "C" fn(u32) -> sys::ze_result_t = symbol("zesInit");
    assert_eq!(unsafe { init(0) }, OK);
    let drivers: unsafe extern "C" fn(*mut u32, *mut sys::zes_driver_handle_t) -> sys::ze_result_t =
        symbol("zesDriverGet");
    let (mut count, mut driver) = (1, ptr::null_mut());
    assert_eq!(unsafe { drivers(&mut count, &mut driver) }, OK);
    assert_eq!(count, 1);
    all(symbol("zesDeviceGet"), driver, ptr::null_mut())
}

fn meminfo(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kibibytes.parse::<u64>().unwrap() * 1024
}

/// What processes of others may change meanwhile.
const SLACK: u64 = 1 << 30;

/// Other processes allocate and free memory at any time, so what is expected of the machine's is expected of one of several rounds.
fn in_some_round(round: impl FnMut() -> Result<(), String>) {
    const ROUNDS: usize = 20;
    let rounds = iter::repeat_with(round).take(ROUNDS);
    let failures: Vec<String> = rounds.map_while(Result::err).collect();
    assert!(failures.len() < ROUNDS, "{failures:?}");
}

fn available() -> u64 {
    meminfo("MemAvailable:") + meminfo("SwapFree:")
}

#[test]
fn the_devices_are_those_of_the_core_api() {
    let fill: Fill<sys::zes_device_handle_t, sys::zes_device_properties_t> =
        symbol("zesDeviceGetProperties");
    let uuids = managed_devices().into_iter().map(|device| {
        let mut extended = extensions::zes_device_ext_properties_t {
            stype: extensions::ZES_STRUCTURE_TYPE_DEVICE_EXT_PROPERTIES,
            pNext: ptr::null_mut(),
            uuid: extensions::zes_uuid_t { id: [0xee; 16] },
            type_: 0x7777,
            flags: 0x7777,
        };
        let mut out = sys::zes_device_properties_t {
            stype: sys::ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES,
            pNext: (&raw mut extended).cast(),
            core: sys::ze_device_properties_t {
                // The caller need not set what the driver writes.
                pNext: ptr::without_provenance_mut(0x40),
                ..Default::default()
            },
            ..Default::default()
        };
        assert_eq!(unsafe { fill(device, &mut out) }, OK);
        assert_eq!(out.numSubdevices, 0);
        assert_eq!(extended.uuid.id, out.core.uuid.id);
        assert_eq!(extended.type_, out.core.type_.0);
        assert_eq!(extended.flags, out.core.flags);
        out.core.uuid.id
    });
    let expected = devices().map(|device| properties(device).uuid.id);
    assert_eq!(uuids.collect::<Vec<_>>(), expected);
}

#[test]
fn free_memory_is_what_the_machine_has_available() {
    let modules: List<sys::zes_device_handle_t, sys::zes_mem_handle_t> =
        symbol("zesDeviceEnumMemoryModules");
    let fill: Fill<sys::zes_mem_handle_t, sys::zes_mem_properties_t> =
        symbol("zesMemoryGetProperties");
    let state: Fill<sys::zes_mem_handle_t, sys::zes_mem_state_t> = symbol("zesMemoryGetState");
    for device in managed_devices() {
        let modules = all(modules, device, ptr::null_mut());
        assert_eq!(modules.len(), 1);
        let mut out = sys::zes_mem_properties_t {
            stype: sys::ZES_STRUCTURE_TYPE_MEM_PROPERTIES,
            ..Default::default()
        };
        assert_eq!(unsafe { fill(modules[0], &mut out) }, OK);
        assert_eq!(out.location, sys::ZES_MEM_LOC_SYSTEM);
        let mut now = sys::zes_mem_state_t {
            stype: sys::ZES_STRUCTURE_TYPE_MEM_STATE,
            ..Default::default()
        };
        let round = || {
            let before = available();
            assert_eq!(unsafe { state(modules[0], &mut now) }, OK);
            let after = available();
            assert_eq!(now.size, out.physicalSize);
            assert!(now.size <= meminfo("MemTotal:"));
            // A control group may have less.
            let is_limited = now.size < meminfo("MemTotal:");
            // A part of the machine's memory is kept in reserve.
            let granted = before.min(after) / 32 * 31;
            let least = granted.min(now.size).saturating_sub(SLACK);
            let is_between = now.free <= before.max(after) + SLACK && now.free >= least;
            (is_limited || is_between)
                .then_some(())
                .ok_or_else(|| format!("{before} {} {after}", now.free))
        };
        in_some_round(round);
    }
}

#[test]
fn other_handles_are_refused() {
    let modules: List<sys::zes_device_handle_t, sys::zes_mem_handle_t> =
        symbol("zesDeviceEnumMemoryModules");
    let state: Fill<sys::zes_mem_handle_t, sys::zes_mem_state_t> = symbol("zesMemoryGetState");
    assert!(!managed_devices().is_empty());
    let mut count = 0;
    assert_ne!(
        unsafe { modules(ptr::null_mut(), &mut count, ptr::null_mut()) },
        OK
    );
    let mut out = sys::zes_mem_state_t {
        stype: sys::ZES_STRUCTURE_TYPE_MEM_STATE,
        ..Default::default()
    };
    assert_ne!(unsafe { state(ptr::null_mut(), &mut out) }, OK);
}

#[test]
fn allocated_memory_is_not_free() {
    process::alone("a_device_with_a_share_is_exhausted");
    process::alone_with(
        "a_device_with_a_share_is_exhausted",
        &[("ZEUSM_CPU_DEVICES", "4")],
    );
}

/// The memory is not touched, so the machine has it still.
#[test]
#[ignore = "run by allocated_memory_is_not_free"]
fn a_device_with_a_share_is_exhausted() {
    let modules: List<sys::zes_device_handle_t, sys::zes_mem_handle_t> =
        symbol("zesDeviceEnumMemoryModules");
    let state: Fill<sys::zes_mem_handle_t, sys::zes_mem_state_t> = symbol("zesMemoryGetState");
    let free: Vec<_> = managed_devices()
        .into_iter()
        .map(|device| {
            move || {
                let mut now = sys::zes_mem_state_t {
                    stype: sys::ZES_STRUCTURE_TYPE_MEM_STATE,
                    ..Default::default()
                };
                let module = all(modules, device, ptr::null_mut())[0];
                assert_eq!(unsafe { state(module, &mut now) }, OK);
                now.free
            }
        })
        .collect();
    let context = Context::new();
    let piece = 256 * common::MIB;
    let round = || {
        let before = free[0]();
        let memory: Vec<_> =
            iter::from_fn(|| context.try_alloc(Kind::Device, piece, 0).ok()).collect();
        let left = free[0]();
        // With two devices, the other one has the same memory.
        let other_has = free.len() <= 2 || free[1]() >= piece as u64;
        let taken = (memory.len() * piece) as u64;
        memory.into_iter().for_each(|address| context.free(address));
        let after = free[0]();
        let is_exhausted = left < piece as u64 && before < taken + piece as u64 + SLACK;
        let is_as_expected = is_exhausted && other_has && after + SLACK >= before;
        is_as_expected
            .then_some(())
            .ok_or_else(|| format!("{before} {taken} {left} {other_has} {after}"))
    };
    in_some_round(round);
}

/// `zesDriverGetDeviceByUuidExp`, as oneCCL calls it.
type ByUuid = unsafe extern "C" fn(
    sys::ze_driver_handle_t,
    extensions::zes_uuid_t,
    *mut sys::zes_device_handle_t,
    *mut sys::ze_bool_t,
    *mut u32,
) -> sys::ze_result_t;

#[test]
fn devices_are_found_by_their_uuids() {
    let tiles = [(listed::DEVICES, "2"), (listed::TILES, "2")];
    process::alone_with("child_finds_devices", &tiles);
}

#[test]
#[ignore = "run by devices_are_found_by_their_uuids"]
fn child_finds_devices() {
    let by_uuid: ByUuid = symbol("zesDriverGetDeviceByUuidExp");
    let find = |id| {
        let (mut device, mut is_part, mut part) = (ptr::null_mut(), 7, 7);
        let uuid = extensions::zes_uuid_t { id };
        let driver = common::driver();
        let result = unsafe { by_uuid(driver, uuid, &mut device, &mut is_part, &mut part) };
        (result, device, is_part, part)
    };
    managed_devices();
    for device in listed::enumerate(None) {
        let id = properties(device).uuid.id;
        assert_eq!(find(id), (OK, device.cast(), 0, 0));
        for (number, tile) in (0..).zip(listed::enumerate(Some(device))) {
            let id = properties(tile).uuid.id;
            assert_eq!(find(id), (OK, device.cast(), 1, number));
        }
    }
    let (result, device, ..) = find([0xAB; 16]);
    assert_eq!(result, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
    assert!(device.is_null());
}
