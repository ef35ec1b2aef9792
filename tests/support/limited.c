// A Level Zero library with two devices that have few capabilities; it returns errors for wrong descriptors. A second driver
// has a device of its own, whose handle ends the process wherever the first driver gets it.
//
// The largest allocation is 4 KiB, unless the call relaxes the limit. Host and device must not access shared memory
// concurrently. No device can access a peer's memory, which the first one does not support to be asked. The first command queue
// group that supports compute and copy is the third one. Operations are complete at once, and do nothing; advice and prefetches
// are not supported. After `limited_lose_device`, the device is lost, and copies and fills report a lack of memory.

#include <stdlib.h>
#include <level_zero/ze_api.h>

static char drivers[2], devices[3], list;

ze_result_t zeInit(ze_init_flags_t flags) { return ZE_RESULT_SUCCESS; }

ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *handles)
{
    for (uint32_t driver = 0; handles && driver < *count && driver < 2; driver++)
        handles[driver] = (void *)&drivers[driver];
    *count = 2;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *handles)
{
    if (driver == (void *)&drivers[1]) {
        if (handles && *count > 0)
            handles[0] = (void *)&devices[2];
        *count = 1;
        return ZE_RESULT_SUCCESS;
    }
    for (uint32_t device = 0; handles && device < *count && device < 2; device++)
        handles[device] = (void *)&devices[device];
    *count = 2;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *properties)
{
    properties->type = ZE_DEVICE_TYPE_GPU;
    properties->maxMemAllocSize = 4096;
    return ZE_RESULT_SUCCESS;
}

// Drivers do not check handles, so a handle of another driver is undefined behaviour.
static void expect_own(ze_device_handle_t device)
{
    if (device == (void *)&devices[2])
        abort();
}

ze_result_t zeDeviceGetMemoryAccessProperties(ze_device_handle_t device, ze_device_memory_access_properties_t *properties)
{
    properties->sharedSingleDeviceAllocCapabilities = ZE_MEMORY_ACCESS_CAP_FLAG_RW;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceCanAccessPeer(ze_device_handle_t device, ze_device_handle_t peer, ze_bool_t *answer)
{
    *answer = 0;
    expect_own(device);
    expect_own(peer);
    return device == (void *)&devices[0] ? ZE_RESULT_ERROR_UNSUPPORTED_FEATURE : ZE_RESULT_SUCCESS;
}

static ze_result_t status = ZE_RESULT_SUCCESS;

void limited_lose_device(void) { status = ZE_RESULT_ERROR_DEVICE_LOST; }

ze_result_t zeDeviceGetStatus(ze_device_handle_t device) { return status; }

ze_result_t zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t *descriptor, ze_context_handle_t *handle)
{
    char *is_of_second = malloc(1);
    *is_of_second = driver == (void *)&drivers[1];
    *handle = (void *)is_of_second;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeContextDestroy(ze_context_handle_t context)
{
    free(context);
    return ZE_RESULT_SUCCESS;
}

// Allocates if the limit is relaxed exactly for the sizes that need it.
static ze_result_t allocate(const ze_relaxed_allocation_limits_exp_desc_t *relaxed, size_t size, void **pointer)
{
    int is_relaxed = relaxed && relaxed->stype == ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC &&
                     relaxed->flags & ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE;
    if ((size <= 4096) != !relaxed)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (size > 4096 && !is_relaxed)
        return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    *pointer = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return *pointer ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
}

ze_result_t zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t *descriptor, size_t size,
                             size_t alignment, ze_device_handle_t device, void **pointer)
{
    if (descriptor->stype != ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    expect_own(device);
    return allocate(descriptor->pNext, size, pointer);
}

ze_result_t zeMemAllocHost(ze_context_handle_t context, const ze_host_mem_alloc_desc_t *descriptor, size_t size,
                           size_t alignment, void **pointer)
{
    if (descriptor->stype != ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return allocate(descriptor->pNext, size, pointer);
}

ze_result_t zeMemGetAllocProperties(ze_context_handle_t context, const void *pointer,
                                    ze_memory_allocation_properties_t *properties, ze_device_handle_t *device)
{
    if (properties->stype != ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    properties->type = ZE_MEMORY_TYPE_DEVICE;
    properties->id = 7;
    *device = (void *)&devices[1];
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeMemGetAddressRange(ze_context_handle_t context, const void *pointer, void **base, size_t *size)
{
    *base = (char *)pointer - 10;
    *size = 4096;
    return ZE_RESULT_SUCCESS;
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
        if (groups[group].stype == ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES)
            groups[group].flags = flags[group];
    *count = 4;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device,
                                         const ze_command_queue_desc_t *descriptor, ze_command_list_handle_t *handle)
{
    if (!*(char *)context)
        expect_own(device);
    if (descriptor->stype != ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC || descriptor->ordinal != 2 ||
        descriptor->mode != ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    *handle = (void *)&list;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListDestroy(ze_command_list_handle_t list) { return ZE_RESULT_SUCCESS; }

ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t list, void *destination, const void *source, size_t size,
                                          ze_event_handle_t signal, uint32_t count, ze_event_handle_t *waits)
{
    return status ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t list, void *destination, const void *pattern,
                                          size_t pattern_size, size_t size, ze_event_handle_t signal, uint32_t count,
                                          ze_event_handle_t *waits)
{
    return status ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY : ZE_RESULT_SUCCESS;
}

ze_result_t zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t list, const void *pointer, size_t size)
{
    return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
}

ze_result_t zeCommandListAppendMemAdvise(ze_command_list_handle_t list, ze_device_handle_t device, const void *pointer,
                                         size_t size, ze_memory_advice_t advice)
{
    return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
}

ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t list, ze_event_handle_t signal, uint32_t count,
                                       ze_event_handle_t *waits)
{
    return ZE_RESULT_SUCCESS;
}

// The bytes of an event pool's indices, which are set once they are used. An event's handle is the address of its byte.
struct pool {
    uint32_t count;
    char used[256];
};

ze_result_t zeEventPoolCreate(ze_context_handle_t context, const ze_event_pool_desc_t *descriptor, uint32_t count,
                              ze_device_handle_t *devices, ze_event_pool_handle_t *handle)
{
    const uint32_t flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP;
    // For all devices, as the lists of any may wait for the events.
    if (descriptor->stype != ZE_STRUCTURE_TYPE_EVENT_POOL_DESC || descriptor->flags != flags || count != 0 || devices ||
        descriptor->count > 256)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    struct pool *pool = calloc(1, sizeof(*pool));
    pool->count = descriptor->count;
    *handle = (void *)pool;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t pool)
{
    free(pool);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventCreate(ze_event_pool_handle_t handle, const ze_event_desc_t *descriptor, ze_event_handle_t *event)
{
    struct pool *pool = (void *)handle;
    if (descriptor->stype != ZE_STRUCTURE_TYPE_EVENT_DESC || descriptor->index >= pool->count ||
        pool->used[descriptor->index] || descriptor->signal != ZE_EVENT_SCOPE_FLAG_HOST ||
        descriptor->wait != ZE_EVENT_SCOPE_FLAG_HOST)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    pool->used[descriptor->index] = 1;
    *event = (void *)&pool->used[descriptor->index];
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeEventDestroy(ze_event_handle_t event) { return ZE_RESULT_SUCCESS; }

ze_result_t zeEventHostReset(ze_event_handle_t event) { return ZE_RESULT_SUCCESS; }

ze_result_t zeEventHostSignal(ze_event_handle_t event) { return ZE_RESULT_SUCCESS; }

ze_result_t zeEventHostSynchronize(ze_event_handle_t event, uint64_t timeout) { return ZE_RESULT_SUCCESS; }

ze_result_t zeEventQueryStatus(ze_event_handle_t event) { return ZE_RESULT_SUCCESS; }
