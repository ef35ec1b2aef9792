//! Several GPUs, tiles, and what the variables of Level Zero and of the runtime make of them. The devices last for the
//! process, so each layout is made in a child process.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/devices.rs"]
mod listed;
#[path = "common/process.rs"]
mod process;

use std::ffi::{CStr, c_char};
use std::ptr;

use common::{OK, Result, direct, driver};
use level_zero_sys as sys;
use listed::{
    DEVICES, Device, PEER_ACCESS, TILES, description, enumerate, memory, properties, text,
};

const HIERARCHY: &str = "ZE_FLAT_DEVICE_HIERARCHY";
const MASK: &str = "ZE_AFFINITY_MASK";

/// `zeDeviceGetRootDevice`, which Debian's loader does not have.
type Root = unsafe extern "C" fn(Device, *mut Device) -> Result;

/// The root device, where the library has the function.
fn root(device: Device) -> Option<Device> {
    let root = common::extension::<Root>(c"zeDeviceGetRootDevice")?;
    let mut found = device;
    assert_eq!(unsafe { root(device, &raw mut found) }, OK);
    Some(found)
}

/// The name without the parts that all have.
fn short_name(device: Device) -> String {
    let name = text(&properties(device).name);
    let (name, _) = name
        .strip_prefix("zeusm CPU runtime")
        .unwrap()
        .split_once(" (")
        .unwrap();
    name.trim().to_owned()
}

/// The devices as a child process prints them: a device's sub-devices in brackets, its root device behind `<`.
fn printed(variables: &[(&str, &str)]) -> String {
    let output = process::alone_with("child_prints_the_devices", variables);
    let line = output.lines().find_map(|line| line.split_once("devices: "));
    line.unwrap().1.to_owned()
}

#[test]
fn devices_are_counted_and_masked() {
    for (variables, expected) in [
        (&[(DEVICES, "")][..], ""),
        (&[(DEVICES, "1+cpu")], ", as CPU"),
        (&[(DEVICES, "3")], "0, 1, 2"),
        (&[(DEVICES, "3+cpu")], "0, 1, 2, as CPU"),
        (&[(DEVICES, "3"), (MASK, "2,0")], "0, 2"),
        (&[(DEVICES, "2"), (MASK, "1.0")], "1"),
        (&[(DEVICES, "1+cpu"), (MASK, "1")], "as CPU"),
        (&[(DEVICES, ""), (TILES, "2")], "[0.0 0.1]"),
    ] {
        assert_eq!(printed(variables), expected, "{variables:?}");
    }
}

#[test]
fn tiles_are_presented_by_the_hierarchy_and_masked() {
    for (hierarchy, mask, expected) in [
        ("", "", "0[0.0 0.1 0.2], 1[1.0 1.1 1.2], as CPU"),
        ("COMPOSITE", "1", "1[1.0 1.1 1.2]"),
        ("COMPOSITE", "0.2", "0.2"),
        ("COMPOSITE", "1.1, 1.2", "1[1.1 1.2]"),
        ("COMPOSITE", "0.2, 1.2, 1.0, 0.1", "0[0.1 0.2], 1[1.0 1.2]"),
        ("FLAT", "", "0.0, 0.1, 0.2, 1.0, 1.1, 1.2, as CPU"),
        ("FLAT", "1, 2, 3", "0.1, 0.2, 1.0"),
        (
            "COMBINED",
            "",
            "0.0<0, 0.1<0, 0.2<0, 1.0<1, 1.1<1, 1.2<1, as CPU",
        ),
        ("COMBINED", "0,2,4,6", "0.0<0, 0.2<0, 1.1, as CPU"),
    ] {
        let found = printed(&[
            (DEVICES, "2+cpu"),
            (TILES, "3"),
            (HIERARCHY, hierarchy),
            (MASK, mask),
        ]);
        let expected = if common::extension::<Root>(c"zeDeviceGetRootDevice").is_some() {
            expected.to_owned()
        } else {
            expected.replace("<0", "").replace("<1", "")
        };
        assert_eq!(found, expected, "{hierarchy} {mask}");
    }
}

#[test]
#[ignore = "run by devices_are_counted_and_masked and tiles_are_presented_by_the_hierarchy_and_masked"]
fn child_prints_the_devices() {
    let mut uuids = Vec::new();
    let print = |device: Device| {
        let subdevice = sys::ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE.0;
        let parts = enumerate(Some(device));
        uuids.extend(
            parts
                .iter()
                .chain([&device])
                .map(|device| properties(*device).uuid.id),
        );
        for (index, part) in (0..).zip(&parts) {
            let found = properties(*part);
            assert_eq!(
                (found.subdeviceId, found.flags & subdevice),
                (index, subdevice)
            );
            assert!(root(*part).is_none_or(|root| root == device));
            assert_eq!(enumerate(Some(*part)), []);
            assert_eq!(memory(*part), memory(device) / parts.len() as u64);
        }
        let mut name = short_name(device);
        if !parts.is_empty() {
            let parts: Vec<_> = parts.iter().map(|part| short_name(*part)).collect();
            name.push_str(&format!("[{}]", parts.join(" ")));
        }
        let root = root(device).filter(|root| !root.is_null());
        assert!(root.is_none() || properties(device).flags & subdevice != 0);
        if let Some(root) = root {
            assert!(enumerate(Some(root)).contains(&device));
            name.push_str(&format!("<{}", short_name(root)));
        }
        name
    };
    let names: Vec<_> = enumerate(None).into_iter().map(print).collect();
    println!("devices: {}", names.join(", "));
    uuids.sort_unstable();
    let count = uuids.len();
    uuids.dedup();
    assert_eq!(uuids.len(), count, "UUIDs differ");
}

#[test]
fn a_uuid_is_that_of_the_same_device_under_a_mask() {
    let print = "child_prints_the_last_uuid";
    let all = process::alone_with(print, &[(DEVICES, "3"), (MASK, "0,1,2")]);
    let one = process::alone_with(print, &[(DEVICES, "3"), (MASK, "2")]);
    let uuid = |output: &str| {
        output
            .split_once("uuid: ")
            .unwrap()
            .1
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(uuid(&all), uuid(&one));
    let other = process::alone_with(print, &[(DEVICES, "3"), (MASK, "1")]);
    assert_ne!(uuid(&all), uuid(&other));
}

#[test]
#[ignore = "run by a_uuid_is_that_of_the_same_device_under_a_mask"]
fn child_prints_the_last_uuid() {
    println!(
        "uuid: {:?}",
        properties(*enumerate(None).last().unwrap()).uuid.id
    );
}

#[test]
fn a_value_that_cannot_be_used_is_named_and_leaves_no_driver() {
    for (variable, value) in [
        (DEVICES, "0"),
        (DEVICES, "two"),
        (TILES, "1000000000000"),
        (PEER_ACCESS, "maybe"),
        (HIERARCHY, "NESTED"),
        (MASK, "a.b"),
        (MASK, "9"),
    ] {
        let output = process::run("child_is_not_initialised", &[(variable, value)]);
        assert!(output.status.success(), "{output:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let line = format!("zeusm CPU runtime: {variable}={value:?} is not ");
        assert_eq!(errors.matches(&line).count(), 1, "{errors}");
    }
}

#[test]
#[ignore = "run by a_value_that_cannot_be_used_is_named_and_leaves_no_driver"]
fn child_is_not_initialised() {
    type Describe = unsafe extern "C" fn(sys::ze_driver_handle_t, *mut *const c_char) -> Result;
    let library = if direct() {
        unsafe { sys::load_from(common::library_path()) }.unwrap()
    } else {
        sys::load().unwrap()
    };
    for _ in 0..2 {
        let result = unsafe { library.zeInit.unwrap()(0) };
        assert_eq!(result, sys::ZE_RESULT_ERROR_UNINITIALIZED);
    }
    if !direct() {
        return; // A loader without a driver does not describe.
    }
    let describe: Describe = unsafe { library.symbol(c"zeDriverGetLastErrorDescription") }.unwrap();
    let mut text = ptr::null();
    assert_eq!(unsafe { describe(ptr::null_mut(), &raw mut text) }, OK);
    let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap();
    assert!(text.contains("is not "), "{text}");
    let mut count = 0;
    let result = unsafe { library.zeDriverGet.unwrap()(&raw mut count, ptr::null_mut()) };
    assert_eq!(result, sys::ZE_RESULT_ERROR_UNINITIALIZED);
}

#[test]
fn a_program_chooses_the_devices_before_they_are_listed() {
    process::alone_with("child_chooses", &[(DEVICES, "4")]);
    process::alone_with("child_chooses", &[(DEVICES, "")]);
}

#[test]
#[ignore = "run by a_program_chooses_the_devices_before_they_are_listed"]
fn child_chooses() {
    type Present = unsafe extern "C" fn(
        sys::ze_driver_handle_t,
        u32,
        sys::ze_bool_t,
        u32,
        sys::ze_bool_t,
    ) -> Result;
    let mut address = ptr::null_mut();
    ok!(zeDriverGetExtensionFunctionAddress(
        driver(),
        c"zeusmDriverPresentDevices".as_ptr(),
        &raw mut address
    ));
    if !direct() {
        return; // A loader lists the devices itself.
    }
    let present: Present = unsafe { std::mem::transmute(address) };
    let present = |gpus, tiles| unsafe { present(driver(), gpus, 1, tiles, 1) };
    for (gpus, tiles) in [(0, 1), (1, 0), (33, 1), (1, 17), (u32::MAX, u32::MAX)] {
        assert_eq!(present(gpus, tiles), sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
        assert!(description().contains("is not a number from 1 to"));
    }
    assert_eq!(present(3, 2), OK);
    assert_eq!(present(3, 2), OK);
    assert_eq!(present(2, 2), sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    let devices = enumerate(None);
    assert_eq!(devices.len(), 4);
    assert_eq!(enumerate(Some(devices[0])).len(), 2);
    assert_eq!(present(3, 1), sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
}

/// The PCI address, whose parts the specification writes as domain, bus, device and function.
fn pci(device: Device) -> [u32; 4] {
    let mut out = sys::ze_pci_ext_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDevicePciGetPropertiesExt(device, &raw mut out));
    let speed = out.maxSpeed;
    assert_eq!(
        (speed.genVersion, speed.width, speed.maxBandwidth),
        (-1, -1, -1)
    );
    let address = out.address;
    [
        address.domain,
        address.bus,
        address.device,
        address.function,
    ]
}

#[test]
fn pci_addresses_ascend_and_tiles_have_their_gpu_s() {
    for hierarchy in ["FLAT", "COMPOSITE"] {
        let variables = [(DEVICES, "3+cpu"), (TILES, "2"), (HIERARCHY, hierarchy)];
        process::alone_with("child_compares_pci_addresses", &variables);
    }
}

#[test]
#[ignore = "run by pci_addresses_ascend_and_tiles_have_their_gpu_s"]
fn child_compares_pci_addresses() {
    let devices = enumerate(None);
    let addresses: Vec<_> = devices.iter().map(|device| pci(*device)).collect();
    assert!(addresses.is_sorted(), "{addresses:?}");
    let mut different = addresses.clone();
    different.dedup();
    assert_eq!(different.len(), 4, "three GPUs and the CPU: {addresses:?}");
    for (device, address) in devices.iter().zip(&addresses) {
        for tile in enumerate(Some(*device)) {
            assert_eq!(pci(tile), *address);
        }
    }
}
