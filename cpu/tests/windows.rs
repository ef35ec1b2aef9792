//! What Windows lacks, and what the runtime answers there.
#![cfg(windows)]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "common/devices.rs"]
mod listed;
#[path = "common/process.rs"]
mod process;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_char;
use std::ptr;

use common::{Context, Kind, OK, bytes, bytes_mut, device, driver};
use level_zero_sys as sys;
use level_zero_sys::extensions;

const UNSUPPORTED: sys::ze_result_t = sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;

#[test]
fn processes_share_no_memory() {
    let context = Context::new();
    let memory = context.alloc(Kind::Device, 4096);
    let mut handle = sys::ze_ipc_mem_handle_t::default();
    let result = ze!(zeMemGetIpcHandle(context.0, memory, &raw mut handle));
    assert_eq!(result, UNSUPPORTED);
    let mut properties = sys::ze_driver_ipc_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES,
        flags: u32::MAX,
        ..Default::default()
    };
    ok!(zeDriverGetIpcProperties(driver(), &raw mut properties));
    assert_eq!(properties.flags, 0);
    let external = common::external_memory();
    assert_eq!(external.memoryAllocationExportTypes, 0);
    assert_eq!(external.memoryAllocationImportTypes, 0);
    context.free(memory);
}

#[test]
fn memory_for_a_descriptor_is_refused() {
    let context = Context::new();
    let export = sys::ze_external_memory_export_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC,
        flags: sys::ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD.0,
        ..Default::default()
    };
    let desc = sys::ze_device_mem_alloc_desc_t {
        pNext: (&raw const export).cast(),
        ..common::device_desc()
    };
    let mut memory = ptr::null_mut();
    let result = ze!(zeMemAllocDevice(
        context.0,
        &raw const desc,
        4096,
        0,
        device(),
        &raw mut memory
    ));
    assert_eq!(result, sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION);
}

#[test]
fn memory_of_the_program_is_adopted_while_it_is_there() {
    const SIZE: usize = 8192;
    let context = Context::new();
    let layout = Layout::from_size_align(SIZE, 4096).unwrap();
    let own = unsafe { alloc_zeroed(layout) };
    let adopt = |place: *mut u8| {
        let system = extensions::ze_external_memmap_sysmem_ext_desc_t {
            stype: extensions::ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC,
            pNext: ptr::null(),
            pSystemMemory: place.cast(),
            size: SIZE as u64,
        };
        let desc = sys::ze_host_mem_alloc_desc_t {
            pNext: (&raw const system).cast(),
            ..common::host_desc()
        };
        let mut memory = ptr::null_mut();
        let result = ze!(zeMemAllocHost(
            context.0,
            &raw const desc,
            SIZE,
            0,
            &raw mut memory
        ));
        (result, memory)
    };
    let (result, memory) = adopt(own);
    assert_eq!((result, memory.cast()), (OK, own));
    let from = context.alloc(Kind::Device, SIZE);
    bytes_mut(from, SIZE).fill(7);
    let list = context.immediate(0);
    common::copy(list, memory, from, SIZE, common::NONE, &[]);
    common::finish(&context, list);
    assert!(bytes(own.cast(), SIZE).iter().all(|byte| *byte == 7));
    common::destroy(list);
    context.free(memory);
    context.free(from);
    unsafe { dealloc(own, layout) };
    let (result, _) = adopt(ptr::without_provenance_mut(1 << 46));
    assert_eq!(result, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

#[test]
fn there_is_no_virtual_memory() {
    let context = Context::new();
    let mut pointer = ptr::null_mut();
    let result = ze!(zeVirtualMemReserve(
        context.0,
        ptr::null(),
        4096,
        &raw mut pointer
    ));
    assert_eq!(result, UNSUPPORTED);
    let mut desc = sys::ze_physical_mem_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
        size: 4096,
        ..Default::default()
    };
    let mut physical = ptr::null_mut();
    let result = ze!(zePhysicalMemCreate(
        context.0,
        device(),
        &raw mut desc,
        &raw mut physical
    ));
    assert_eq!(result, UNSUPPORTED);
}

#[test]
fn the_events_of_a_pool_for_processes_work_in_one() {
    let context = Context::new();
    let desc = sys::ze_event_pool_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
        count: 1,
        flags: sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0 | sys::ZE_EVENT_POOL_FLAG_IPC.0,
        ..Default::default()
    };
    let (mut pool, mut event) = (ptr::null_mut(), ptr::null_mut());
    let none = ptr::null_mut();
    ok!(zeEventPoolCreate(
        context.0,
        &raw const desc,
        0,
        none,
        &raw mut pool
    ));
    let desc = sys::ze_event_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
        ..Default::default()
    };
    ok!(zeEventCreate(pool, &raw const desc, &raw mut event));
    ok!(zeEventHostSignal(event));
    common::wait(event);
    let mut handle = sys::ze_ipc_event_pool_handle_t::default();
    let result = ze!(zeEventPoolGetIpcHandle(pool, &raw mut handle));
    assert_eq!(result, UNSUPPORTED);
    ok!(zeEventDestroy(event));
    ok!(zeEventPoolDestroy(pool));
}

#[test]
fn what_needs_linux_is_no_extension() {
    let names = listed::extensions();
    let has = |name: &str| names.iter().any(|known| known == name);
    assert!(has("ZE_extension_external_memmap_sysmem"));
    assert!(!has("ZE_extension_ipc_mem_handle_type") && !has("ZEUSM_experimental_forks"));
}

#[test]
fn a_module_is_not_built_without_opencl_and_its_log_says_so() {
    process::alone_with(
        "child_builds_a_module",
        &[("ZEUSM_OPENCL_LIBRARY", "C:\\no\\opencl.dll")],
    );
}

#[test]
#[ignore = "run by a_module_is_not_built_without_opencl_and_its_log_says_so"]
fn child_builds_a_module() {
    let context = Context::new();
    // The header (magic number, version 1.0, generator, bound, schema), and `OpMemoryModel Physical64 OpenCL`.
    let code = [0x0723_0203_u32, 0x0001_0000, 0, 1, 0, 3 << 16 | 14, 2, 2];
    let desc = sys::ze_module_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_MODULE_DESC,
        format: sys::ZE_MODULE_FORMAT_IL_SPIRV,
        inputSize: size_of_val(&code),
        pInputModule: code.as_ptr().cast(),
        ..Default::default()
    };
    let (mut module, mut log) = (ptr::null_mut(), ptr::null_mut());
    let result = ze!(zeModuleCreate(
        context.0,
        device(),
        &raw const desc,
        &raw mut module,
        &raw mut log
    ));
    assert_eq!(result, sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
    let mut size = 0;
    ok!(zeModuleBuildLogGetString(
        log,
        &raw mut size,
        ptr::null_mut()
    ));
    let mut text = vec![0 as c_char; size];
    ok!(zeModuleBuildLogGetString(
        log,
        &raw mut size,
        text.as_mut_ptr()
    ));
    let text = listed::text(&text);
    assert!(text.contains("C:\\no\\opencl.dll"), "{text}");
    ok!(zeModuleBuildLogDestroy(log));
}

#[test]
fn the_checker_is_refused() {
    let output = process::run("child_asks_for_the_checker", &[("ZEUSM_CHECK", "1")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("the checker is for Linux only"), "{text}");
}

#[test]
#[ignore = "run by the_checker_is_refused"]
fn child_asks_for_the_checker() {
    common::library();
}
