// Fills device memory, copies it to host memory, and compares: a test of a C++ program over Level Zero.
#include <level_zero/ze_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

static void check(ze_result_t result, const char *call) {
    if (result != ZE_RESULT_SUCCESS) {
        std::fprintf(stderr, "%s: 0x%x\n", call, static_cast<unsigned>(result));
        std::exit(1);
    }
}
#define CHECK(call) check(call, #call)

int main() {
    CHECK(zeInit(ZE_INIT_FLAG_GPU_ONLY));
    uint32_t count = 1;
    ze_driver_handle_t driver;
    CHECK(zeDriverGet(&count, &driver));
    count = 1;
    ze_device_handle_t device;
    CHECK(zeDeviceGet(driver, &count, &device));
    ze_device_properties_t properties{};
    properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
    CHECK(zeDeviceGetProperties(device, &properties));

    ze_context_desc_t described{};
    described.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
    ze_context_handle_t context;
    CHECK(zeContextCreate(driver, &described, &context));
    ze_device_mem_alloc_desc_t on_device{};
    on_device.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC;
    ze_host_mem_alloc_desc_t on_host{};
    on_host.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC;
    constexpr size_t size = 1 << 20;
    void *source, *target;
    CHECK(zeMemAllocDevice(context, &on_device, size, 64, device, &source));
    CHECK(zeMemAllocHost(context, &on_host, size, 64, &target));

    ze_command_queue_desc_t synchronous{};
    synchronous.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
    synchronous.mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
    ze_command_list_handle_t list;
    CHECK(zeCommandListCreateImmediate(context, device, &synchronous, &list));
    const uint8_t pattern = 7;
    CHECK(zeCommandListAppendMemoryFill(list, source, &pattern, 1, size, nullptr, 0, nullptr));
    CHECK(zeCommandListAppendMemoryCopy(list, target, source, size, nullptr, 0, nullptr));
    const auto bytes = static_cast<const uint8_t *>(target);
    const bool right = std::all_of(bytes, bytes + size, [=](uint8_t byte) { return byte == pattern; });
    std::printf("%s: %s\n", properties.name, right ? "right" : "wrong");

    CHECK(zeCommandListDestroy(list));
    CHECK(zeMemFree(context, source));
    CHECK(zeMemFree(context, target));
    CHECK(zeContextDestroy(context));
    return right ? 0 : 1;
}
