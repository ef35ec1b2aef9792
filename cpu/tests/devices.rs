//! Properties of the driver and the device.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::macro_metavars_in_unsafe
)]
#![allow(missing_docs)]

mod common;
#[path = "common/process.rs"]
mod process;

use std::ffi::{CStr, c_char};
use std::ptr;

use common::{OK, Result, device, direct, driver};
use level_zero_sys as sys;
use level_zero_sys::extensions;

fn text(array: &[c_char]) -> String {
    unsafe { CStr::from_ptr(array.as_ptr()) }
        .to_str()
        .unwrap()
        .to_owned()
}

fn properties() -> sys::ze_device_properties_t {
    let mut out = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDeviceGetProperties(device(), &raw mut out));
    out
}

#[test]
fn the_device_is_a_gpu_to_the_api_and_a_cpu_by_name() {
    let out = properties();
    assert_eq!((out.type_, out.vendorId), (sys::ZE_DEVICE_TYPE_GPU, 0x8086));
    let name = text(&out.name);
    assert!(name.contains("CPU"), "{name}");
    let cpus = std::thread::available_parallelism().unwrap().get() as u32;
    let threads =
        out.numSlices * out.numSubslicesPerSlice * out.numEUsPerSubslice * out.numThreadsPerEU;
    assert_eq!(threads, cpus);
    assert_ne!(out.uuid.id, [0; 16]);
    assert_eq!(out.uuid.id, properties().uuid.id);
}

#[test]
fn a_discrete_device_has_no_concurrent_shared_memory() {
    let print = "child_prints_what_decides_about_migration";
    for (variable, expected) in [("0", "integrated, concurrent"), ("1", "discrete, not")] {
        let output = process::alone_with(print, &[("ZEUSM_CPU_DISCRETE", variable)]);
        assert!(output.contains(expected), "{output}");
    }
}

#[test]
#[ignore = "run by a_discrete_device_has_no_concurrent_shared_memory"]
fn child_prints_what_decides_about_migration() {
    let mut access = sys::ze_device_memory_access_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDeviceGetMemoryAccessProperties(device(), &raw mut access));
    let concurrent = sys::ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT.0;
    assert_ne!(access.deviceAllocCapabilities & concurrent, 0);
    let is_integrated = properties().flags & sys::ZE_DEVICE_PROPERTY_FLAG_INTEGRATED.0 != 0;
    let is_concurrent = access.sharedSingleDeviceAllocCapabilities & concurrent != 0;
    println!(
        "{}, {}",
        if is_integrated {
            "integrated"
        } else {
            "discrete"
        },
        if is_concurrent { "concurrent" } else { "not" }
    );
}

#[test]
fn the_memory_is_the_machines() {
    let mut out = sys::ze_device_memory_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES,
        ..Default::default()
    };
    let mut count = 0;
    ok!(zeDeviceGetMemoryProperties(
        device(),
        &raw mut count,
        ptr::null_mut()
    ));
    assert_eq!(count, 1);
    ok!(zeDeviceGetMemoryProperties(
        device(),
        &raw mut count,
        &raw mut out
    ));
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .unwrap();
    let machine: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(out.totalSize > 0 && out.totalSize <= machine << 10);
    assert!(properties().maxMemAllocSize <= out.totalSize);
}

#[test]
fn there_is_one_device_without_parts_or_peers() {
    let mut count = 0;
    ok!(zeDeviceGetSubDevices(
        device(),
        &raw mut count,
        ptr::null_mut()
    ));
    assert_eq!(count, 0);
    let mut count = 7;
    let mut devices = [ptr::null_mut(); 7];
    ok!(zeDeviceGet(driver(), &raw mut count, devices.as_mut_ptr()));
    assert_eq!(count, 1);
    let mut accessible = 0;
    ok!(zeDeviceCanAccessPeer(
        device(),
        device(),
        &raw mut accessible
    ));
    assert_eq!(accessible, 1);
    type Root =
        unsafe extern "C" fn(sys::ze_device_handle_t, *mut sys::ze_device_handle_t) -> Result;
    if let Some(root) = common::extension::<Root>(c"zeDeviceGetRootDevice") {
        let mut parent = device();
        assert_eq!(unsafe { root(device(), &raw mut parent) }, OK);
        assert!(parent.is_null());
    }
}

#[test]
fn one_queue_group_computes_and_copies() {
    let mut out = sys::ze_command_queue_group_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES,
        ..Default::default()
    };
    let mut count = 0;
    ok!(zeDeviceGetCommandQueueGroupProperties(
        device(),
        &raw mut count,
        ptr::null_mut()
    ));
    assert_eq!(count, 1);
    ok!(zeDeviceGetCommandQueueGroupProperties(
        device(),
        &raw mut count,
        &raw mut out
    ));
    let both = sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE.0
        | sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY.0;
    assert_eq!(out.flags & both, both);
    assert!(out.numQueues >= 1 && out.maxMemoryFillPatternSize >= 128);
}

#[test]
fn other_properties_are_filled() {
    macro_rules! answers {
        ($($function:ident $type:ident $stype:ident;)*) => {$(
            let mut out = sys::$type { stype: sys::$stype, ..Default::default() };
            ok!($function(device(), &raw mut out));
            out.stype = sys::ZE_STRUCTURE_TYPE_CONTEXT_DESC;
            assert_eq!(
                ze!($function(device(), &raw mut out)),
                sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
                "{}", stringify!($function),
            );
        )*};
    }
    answers! {
        zeDeviceGetProperties ze_device_properties_t ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
        zeDeviceGetComputeProperties ze_device_compute_properties_t
            ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES;
        zeDeviceGetModuleProperties ze_device_module_properties_t
            ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES;
        zeDeviceGetMemoryAccessProperties ze_device_memory_access_properties_t
            ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES;
        zeDeviceGetImageProperties ze_device_image_properties_t
            ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES;
        zeDeviceGetExternalMemoryProperties ze_device_external_memory_properties_t
            ZE_STRUCTURE_TYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES;
    }
}

#[test]
fn the_driver_reports_its_version_and_extensions() {
    let mut out = sys::ze_driver_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDriverGetProperties(driver(), &raw mut out));
    let version = out.driverVersion;
    let fields = [version >> 24, version >> 16 & 0xff, version & 0xffff].map(|it| it.to_string());
    assert_eq!(fields.join("."), env!("CARGO_PKG_VERSION"));
    let mut count = 0;
    ok!(zeDriverGetExtensionProperties(
        driver(),
        &raw mut count,
        ptr::null_mut()
    ));
    let mut all = vec![sys::ze_driver_extension_properties_t::default(); count as usize];
    ok!(zeDriverGetExtensionProperties(
        driver(),
        &raw mut count,
        all.as_mut_ptr()
    ));
    let names: Vec<String> = all.iter().map(|extension| text(&extension.name)).collect();
    assert!(
        names
            .iter()
            .any(|name| name == "ZE_experimental_relaxed_allocation_limits")
    );
    // Room for fewer than there are.
    let mut count = 1;
    ok!(zeDriverGetExtensionProperties(
        driver(),
        &raw mut count,
        all.as_mut_ptr()
    ));
    assert_eq!(count, 1);
}

#[test]
fn drivers_are_initialised_by_kind() {
    type InitDrivers = unsafe extern "C" fn(
        *mut u32,
        *mut sys::ze_driver_handle_t,
        *mut extensions::ze_init_driver_type_desc_t,
    ) -> Result;
    if !direct() {
        return; // A loader asks the driver in its own way.
    }
    let init: InitDrivers = common::extension(c"zeInitDrivers").unwrap();
    let wanted = |flags| extensions::ze_init_driver_type_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC,
        pNext: ptr::null(),
        flags,
    };
    for (flags, drivers) in [(1, 1), (2, 0), (3, 1), (u32::MAX, 1)] {
        let mut count = 0;
        assert_eq!(
            unsafe { init(&raw mut count, ptr::null_mut(), &mut wanted(flags)) },
            OK
        );
        assert_eq!(count, drivers, "{flags}");
    }
    let mut count = 1;
    let mut found = ptr::null_mut();
    assert_eq!(
        unsafe { init(&raw mut count, &raw mut found, &mut wanted(1)) },
        OK
    );
    assert_eq!(found, driver());
    assert_eq!(
        unsafe { init(&raw mut count, &raw mut found, &mut wanted(0)) },
        sys::ZE_RESULT_ERROR_INVALID_ENUMERATION
    );
}
