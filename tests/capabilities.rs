//! A device with limited capabilities and a driver that checks descriptors, which a library in C simulates.
#![allow(clippy::unwrap_used)]

#[path = "support/child.rs"]
mod child;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use zeusm::pool::Provider;
use zeusm::usm::{Allocation, LevelZeroProvider};
use zeusm::{Context, Device, Error, Queue, Runtime, UsmKind};

/// A library with one device. Its largest allocation is 4 KiB, unless the call relaxes the limit, and host and device must
/// not access shared memory concurrently. Its first command queue group cannot compute. An index of an event pool may be used
/// once.
const LIBRARY: &str = r#"
#include <stdlib.h>
#include <level_zero/ze_api.h>

static char driver, device, context, list;

ze_result_t zeInit(ze_init_flags_t flags) { return ZE_RESULT_SUCCESS; }

static ze_result_t one(uint32_t *count, void **handles, void *handle)
{
    if (handles && *count > 0)
        handles[0] = handle;
    *count = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *handles)
{
    return one(count, (void **)handles, &driver);
}

ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *handles)
{
    return one(count, (void **)handles, &device);
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *properties)
{
    properties->type = ZE_DEVICE_TYPE_GPU;
    properties->maxMemAllocSize = 4096;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetMemoryAccessProperties(ze_device_handle_t device, ze_device_memory_access_properties_t *properties)
{
    properties->sharedSingleDeviceAllocCapabilities = ZE_MEMORY_ACCESS_CAP_FLAG_RW;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t *descriptor, ze_context_handle_t *handle)
{
    *handle = (void *)&context;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeContextDestroy(ze_context_handle_t context) { return ZE_RESULT_SUCCESS; }

ze_result_t zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t *descriptor, size_t size,
                             size_t alignment, ze_device_handle_t device, void **pointer)
{
    const ze_relaxed_allocation_limits_exp_desc_t *relaxed = descriptor->pNext;
    int is_relaxed = relaxed && relaxed->stype == ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC &&
                     relaxed->flags & ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE;
    if (descriptor->stype != ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC || (size <= 4096) != !relaxed)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (size > 4096 && !is_relaxed)
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    *pointer = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return *pointer ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
}

ze_result_t zeMemFree(ze_context_handle_t context, void *pointer)
{
    free(pointer);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t device, uint32_t *count,
                                                   ze_command_queue_group_properties_t *groups)
{
    const uint32_t copy = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY, compute = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
    const uint32_t flags[] = {copy, compute, copy | compute, copy | compute};
    for (uint32_t group = 0; groups && group < *count && group < 4; group++)
        groups[group].flags = flags[group];
    *count = 4;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device,
                                         const ze_command_queue_desc_t *descriptor, ze_command_list_handle_t *handle)
{
    if (descriptor->stype != ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC || descriptor->ordinal != 2 ||
        descriptor->mode != ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *handle = (void *)&list;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListDestroy(ze_command_list_handle_t list) { return ZE_RESULT_SUCCESS; }

static struct { uint32_t count; char used[256]; } pool;

ze_result_t zeEventPoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t *descriptor, uint32_t count,
                              ze_device_handle_t *devices, ze_event_pool_handle_t *handle)
{
    const uint32_t flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
    if (descriptor->stype != ZE_STRUCTURE_TYPE_EVENT_POOL_DESC || descriptor->flags != flags || count != 1 ||
        descriptor->count > sizeof(pool.used))
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    pool.count = descriptor->count;
    *handle = (void *)&pool;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t pool) { return ZE_RESULT_SUCCESS; }

ze_result_t zeEventCreate(ze_event_pool_handle_t handle, const ze_event_desc_t *descriptor, ze_event_handle_t *event)
{
    if (descriptor->stype != ZE_STRUCTURE_TYPE_EVENT_DESC || descriptor->index >= pool.count ||
        pool.used[descriptor->index] || descriptor->signal != ZE_EVENT_SCOPE_FLAG_HOST ||
        descriptor->wait != ZE_EVENT_SCOPE_FLAG_HOST)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    pool.used[descriptor->index] = 1;
    *event = (void *)&pool.used[descriptor->index];
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventDestroy(ze_event_handle_t event) { return ZE_RESULT_SUCCESS; }

ze_result_t zeEventHostReset(ze_event_handle_t event) { return ZE_RESULT_SUCCESS; }

ze_result_t zeEventHostSignal(ze_event_handle_t event) { return ZE_RESULT_SUCCESS; }
"#;

#[test]
fn calls_follow_the_devices_capabilities() {
    let root = tempfile::tempdir().unwrap();
    let (code, library) = (
        root.path().join("limited.c"),
        root.path().join("liblimited.so"),
    );
    fs::write(&code, LIBRARY).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &code])
        .status();
    assert!(compiled.unwrap().success());
    let mut command = child::command("limited_device");
    command.env("ZEUSM_RUNTIME", &library);
    child::run(command);
}

#[test]
#[ignore = "run by calls_follow_the_devices_capabilities"]
fn limited_device() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    assert_eq!(device.largest_allocation(), 4096);
    assert!(!device.has_concurrent_shared_access());
    allocations(&context, &device);
    events(&context, &device);
}

fn allocations(context: &Context, device: &Device) {
    for (size, alignment) in [(100, 0), (4096, 64), (4097, 0), (1 << 20, 0)] {
        let memory = Allocation::direct(context, device, UsmKind::Device, size, alignment);
        assert_eq!(memory.unwrap().size(), size);
    }
    // The library has no function for shared memory.
    let error = Allocation::direct(context, device, UsmKind::Shared, 64, 0).unwrap_err();
    assert!(
        matches!(error, Error::Allocation { limit: 4096, .. }),
        "{error}"
    );
    for (kind, shared) in [
        (UsmKind::Host, true),
        (UsmKind::Device, true),
        (UsmKind::Shared, false),
    ] {
        let provider = LevelZeroProvider::new(context, device, kind);
        assert_eq!(provider.shares_allocations(), shared, "{kind}");
    }
}

fn events(context: &Context, device: &Device) {
    let queue = Queue::new(context, device).unwrap();
    let events: Vec<_> = (0..64).map(|_| queue.host_task(|| ()).unwrap()).collect();
    let handles: BTreeSet<_> = events.iter().map(|event| event.handle().addr()).collect();
    assert_eq!(handles.len(), events.len());
}
