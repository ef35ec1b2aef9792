//! Properties of the driver and the devices, and what belongs to one device.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/devices.rs"]
mod listed;
#[path = "common/process.rs"]
mod process;

use std::ptr;

use common::{Context, MIB, NONE, OK, Result, bytes, bytes_mut, device, devices, direct, driver};
use level_zero_sys as sys;
use level_zero_sys::extensions;
use listed::{properties, text};

#[test]
fn one_device_is_a_gpu_and_one_a_cpu_to_the_api_and_both_are_cpus_by_name() {
    let types = devices().map(|device| properties(device).type_);
    assert_eq!(types, [sys::ZE_DEVICE_TYPE_GPU, sys::ZE_DEVICE_TYPE_CPU]);
    let cpus = std::thread::available_parallelism().unwrap().get() as u32;
    for device in devices() {
        let out = properties(device);
        assert_eq!(out.vendorId, 0x8086);
        let name = text(&out.name);
        assert!(name.starts_with("zeusm CPU runtime"), "{name}");
        let units = out.numSlices * out.numSubslicesPerSlice * out.numEUsPerSubslice;
        // oneMKL divides by half of it.
        assert_eq!(out.numThreadsPerEU, 2);
        // Intel's GPUs have a multiple of 16 execution units. oneDPL launches as many work-groups as an eighth of them; ggml
        // divides by a sixteenth.
        let is_gpu = out.type_ == sys::ZE_DEVICE_TYPE_GPU;
        assert_eq!(
            units,
            if is_gpu {
                cpus.next_multiple_of(16)
            } else {
                cpus
            }
        );
    }
}

#[test]
fn the_devices_can_be_told_apart() {
    let [gpu, cpu] = devices().map(properties);
    assert_ne!(text(&gpu.name), text(&cpu.name));
    assert_ne!(gpu.uuid.id, cpu.uuid.id);
    for out in [gpu, cpu] {
        assert_ne!(out.uuid.id, [0; 16]);
    }
    assert_eq!(
        devices().map(|device| properties(device).uuid.id),
        [gpu.uuid.id, cpu.uuid.id]
    );
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
    let is_integrated = properties(device()).flags & sys::ZE_DEVICE_PROPERTY_FLAG_INTEGRATED.0 != 0;
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
    assert_eq!(out.maxBusWidth, 64);
    assert!(out.totalSize > 0 && out.totalSize <= machine << 10);
    assert!(properties(device()).maxMemAllocSize <= out.totalSize);
}

#[test]
fn every_device_is_a_root_and_reaches_the_memory_of_all() {
    type Root =
        unsafe extern "C" fn(sys::ze_device_handle_t, *mut sys::ze_device_handle_t) -> Result;
    for device in devices() {
        let mut count = 1;
        ok!(zeDeviceGetSubDevices(
            device,
            &raw mut count,
            ptr::null_mut()
        ));
        assert_eq!(count, 0);
        for peer in devices() {
            let mut accessible = 0;
            ok!(zeDeviceCanAccessPeer(device, peer, &raw mut accessible));
            assert_eq!(accessible, 1);
            let mut out = sys::ze_device_p2p_properties_t {
                stype: sys::ZE_STRUCTURE_TYPE_DEVICE_P2P_PROPERTIES,
                ..Default::default()
            };
            ok!(zeDeviceGetP2PProperties(device, peer, &raw mut out));
            assert_ne!(out.flags & sys::ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS.0, 0);
        }
        if let Some(root) = common::extension::<Root>(c"zeDeviceGetRootDevice") {
            let mut parent = device;
            assert_eq!(unsafe { root(device, &raw mut parent) }, OK);
            assert!(parent.is_null());
        }
    }
}

#[test]
fn a_count_selects_the_first_devices() {
    for (room, found) in [(0, 2), (1, 1), (2, 2), (7, 2)] {
        let (mut count, mut list) = (room, [ptr::null_mut(); 7]);
        ok!(zeDeviceGet(driver(), &raw mut count, list.as_mut_ptr()));
        assert_eq!(count, found);
        let filled = if room == 0 { 0 } else { found as usize };
        assert_eq!(list[..filled], devices()[..filled]);
        assert!(list[filled..].iter().all(|device| device.is_null()));
    }
}

fn allocate(context: &Context, device: sys::ze_device_handle_t, size: usize) -> common::Memory {
    let (desc, mut memory) = (common::device_desc(), ptr::null_mut());
    ok!(zeMemAllocDevice(
        context.0,
        &raw const desc,
        size,
        0,
        device,
        &raw mut memory
    ));
    memory
}

/// The device that the runtime reports for memory.
fn owner(context: &Context, memory: common::Memory) -> sys::ze_device_handle_t {
    let mut owner = ptr::null_mut();
    let mut out = sys::ze_memory_allocation_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
        ..Default::default()
    };
    ok!(zeMemGetAllocProperties(
        context.0,
        memory,
        &raw mut out,
        &raw mut owner
    ));
    owner
}

/// An immediate list of a device that executes in order.
fn list(context: &Context, device: sys::ze_device_handle_t) -> common::List {
    let desc = sys::ze_command_queue_desc_t {
        mode: sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
        ..common::queue_desc(0)
    };
    context.immediate_on(device, &desc)
}

#[test]
fn memory_and_lists_belong_to_their_device() {
    type DeviceOf = unsafe extern "C" fn(common::List, *mut sys::ze_device_handle_t) -> Result;
    let context = Context::new();
    for device in devices() {
        let memory = allocate(&context, device, 4096);
        assert_eq!(owner(&context, memory), device);
        context.free(memory);
        let list = list(&context, device);
        if let Some(device_of) = common::extension::<DeviceOf>(c"zeCommandListGetDeviceHandle") {
            let mut found = ptr::null_mut();
            assert_eq!(unsafe { device_of(list, &raw mut found) }, OK);
            assert_eq!(found, device);
        }
        common::destroy(list);
    }
}

#[test]
fn a_list_of_either_device_copies_from_one_to_the_other() {
    let context = Context::new();
    let memories = devices().map(|device| allocate(&context, device, MIB));
    for (turn, device) in (1..).zip(devices()) {
        let list = list(&context, device);
        for (to, from) in [(0, 1), (1, 0)] {
            bytes_mut(memories[from], MIB).fill(turn);
            bytes_mut(memories[to], MIB).fill(0);
            common::copy(list, memories[to], memories[from], MIB, NONE, &[]);
            assert!(bytes(memories[to], MIB).iter().all(|byte| *byte == turn));
        }
        common::destroy(list);
    }
    memories.iter().for_each(|memory| context.free(*memory));
}

#[test]
#[cfg_attr(windows, ignore = "processes share no memory on Windows")]
fn memory_from_a_handle_belongs_to_the_device_that_opened_it() {
    let context = Context::new();
    let memory = allocate(&context, device(), 4096);
    let mut handle = sys::ze_ipc_mem_handle_t::default();
    ok!(zeMemGetIpcHandle(context.0, memory, &raw mut handle));
    for device in devices() {
        let mut opened = ptr::null_mut();
        ok!(zeMemOpenIpcHandle(
            context.0,
            device,
            handle,
            0,
            &raw mut opened
        ));
        assert_eq!(owner(&context, opened), device);
        ok!(zeMemCloseIpcHandle(context.0, opened));
    }
    context.free(memory);
}

#[test]
fn a_context_may_be_limited_to_a_device() {
    let desc = sys::ze_context_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_CONTEXT_DESC,
        ..Default::default()
    };
    for mut device in devices() {
        let mut context = ptr::null_mut();
        ok!(zeContextCreateEx(
            driver(),
            &raw const desc,
            1,
            &raw mut device,
            &raw mut context
        ));
        let context = Context(context);
        let memory = allocate(&context, device, 64);
        assert_eq!(owner(&context, memory), device);
        context.free(memory);
    }
}

/// Intel's driver does not read the type of a structure whose position tells it.
#[test]
fn structures_without_a_type_are_tolerated() {
    process::alone_with(
        "child_leaves_out_the_types_of_structures",
        &[(common::STRICT, "0")],
    );
}

/// SYCL uses its second adapter from 20.1 on, which runs no kernels on sub-devices, and the first one immediate command lists
/// from 12.60 on.
#[test]
fn the_architecture_selects_an_adapter_of_sycl_that_serves_the_devices() {
    let of = |architecture: u32, release: u32| architecture << 22 | release << 14;
    let first = of(12, 60)..of(20, 1);
    for (variables, is_first) in [
        (&[][..], false),
        (&[(listed::DEVICES, "2")], false),
        (&[(listed::TILES, "2")], true),
        (&[(listed::TILES, "2"), ("ZE_AFFINITY_MASK", "0.1")], false),
        (
            &[(listed::TILES, "2"), ("ZE_FLAT_DEVICE_HIERARCHY", "FLAT")],
            false,
        ),
    ] {
        let output = process::alone_with("child_prints_its_architecture", variables);
        let (_, text) = output.split_once("version ").unwrap();
        let version: u32 = text.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(
            first.contains(&version),
            is_first,
            "{variables:?} {version}"
        );
        assert!(version >= first.start, "{variables:?} {version}");
    }
}

#[test]
#[ignore = "run by the_architecture_selects_an_adapter_of_sycl_that_serves_the_devices"]
fn child_prints_its_architecture() {
    let mut version = extensions::ze_device_ip_version_ext_t {
        stype: extensions::ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT,
        pNext: ptr::null_mut(),
        ipVersion: 0,
    };
    let mut out = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        pNext: (&raw mut version).cast(),
        ..Default::default()
    };
    let first = listed::enumerate(None)[0];
    ok!(zeDeviceGetProperties(first, &raw mut out));
    println!("version {}", version.ipVersion);
}

#[test]
#[ignore = "run by structures_without_a_type_are_tolerated"]
fn child_leaves_out_the_types_of_structures() {
    let mut out = sys::ze_device_properties_t::default();
    ok!(zeDeviceGetProperties(device(), &raw mut out));
    assert_eq!(out.vendorId, 0x8086);
    let desc = sys::ze_context_desc_t::default();
    let mut context = ptr::null_mut();
    ok!(zeContextCreate(driver(), &raw const desc, &raw mut context));
    let (device_desc, mut memory) = (sys::ze_device_mem_alloc_desc_t::default(), ptr::null_mut());
    ok!(zeMemAllocDevice(
        context,
        &raw const device_desc,
        64,
        0,
        device(),
        &raw mut memory
    ));
    ok!(zeMemFree(context, memory));
    ok!(zeContextDestroy(context));
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
    let names = listed::extensions();
    assert!(
        names
            .iter()
            .any(|name| name == "ZE_experimental_relaxed_allocation_limits")
    );
    // Room for fewer than there are.
    let mut all = vec![sys::ze_driver_extension_properties_t::default(); names.len()];
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
