// A Level Zero library with system management. It has two GPUs of one name: an integrated one, without a PCI address, and a card
// with two tiles. The variable LACKS names what it does not have: "GPUs", or of system management
// "management" (a function fails), "devices" or "modules".

#include <stdlib.h>
#include <string.h>
#include <level_zero/ze_api.h>
#include <level_zero/zes_api.h>

enum { INTEGRATED, CARD, FIRST_TILE, SECOND_TILE };

// A device's handle is the address of its number here, which is also in its UUID; of a memory module, the address of its tile's.
static char devices[4];

static char number(const void *handle) { return (char)((const char *)handle - devices); }

static int lacks(const char *what)
{
    const char *missing = getenv("LACKS");
    return missing && strcmp(missing, what) == 0;
}

static ze_result_t list(uint32_t *count, void *handles, uint32_t known, char *first)
{
    for (uint32_t i = 0; handles && i < known && i < *count; i++)
        ((void **)handles)[i] = first + i;
    *count = known;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeInit(ze_init_flags_t flags) { return ZE_RESULT_SUCCESS; }

ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *handles) { return list(count, handles, 1, devices); }

ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *handles)
{
    return list(count, handles, lacks("GPUs") ? 0 : 2, devices);
}

ze_result_t zeDeviceGetSubDevices(ze_device_handle_t device, uint32_t *count, ze_device_handle_t *handles)
{
    return list(count, handles, number(device) == CARD ? 2 : 0, devices + FIRST_TILE);
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *properties)
{
    properties->type = ZE_DEVICE_TYPE_GPU;
    strcpy(properties->name, "GPU");
    properties->uuid.id[0] = number(device);
    switch (number(device)) {
    case INTEGRATED:
        properties->flags = ZE_DEVICE_PROPERTY_FLAG_INTEGRATED;
        break;
    case FIRST_TILE:
    case SECOND_TILE:
        properties->flags = ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE;
        properties->subdeviceId = number(device) - FIRST_TILE;
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t device, uint32_t *count, ze_device_memory_properties_t *memories)
{
    if (memories)
        memories[0].totalSize = 4096;
    *count = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDevicePciGetPropertiesExt(ze_device_handle_t device, ze_pci_ext_properties_t *properties)
{
    properties->address.bus = 3;
    return number(device) == INTEGRATED ? ZE_RESULT_ERROR_UNSUPPORTED_FEATURE : ZE_RESULT_SUCCESS;
}

ze_result_t zesInit(uint32_t flags)
{
    return lacks("management") ? ZE_RESULT_ERROR_UNINITIALIZED : ZE_RESULT_SUCCESS;
}

ze_result_t zesDriverGet(uint32_t *count, zes_driver_handle_t *handles) { return list(count, handles, 1, devices); }

ze_result_t zesDeviceGet(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *handles)
{
    return list(count, handles, lacks("devices") ? 0 : 2, devices);
}

ze_result_t zesDeviceGetProperties(zes_device_handle_t device, zes_device_properties_t *properties)
{
    properties->core.uuid.id[0] = number(device);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zesDeviceEnumMemoryModules(zes_device_handle_t device, uint32_t *count, zes_mem_handle_t *handles)
{
    if (lacks("modules"))
        return list(count, handles, 0, devices);
    return number(device) == CARD ? list(count, handles, 2, devices + FIRST_TILE) : list(count, handles, 1, devices);
}

ze_result_t zesMemoryGetProperties(zes_mem_handle_t module, zes_mem_properties_t *properties)
{
    properties->onSubdevice = number(module) >= FIRST_TILE;
    properties->subdeviceId = properties->onSubdevice ? number(module) - FIRST_TILE : 0;
    return ZE_RESULT_SUCCESS;
}

// The integrated GPU's driver reports the machine's available memory, here none, as the size.
ze_result_t zesMemoryGetState(zes_mem_handle_t module, zes_mem_state_t *state)
{
    const uint64_t sizes[] = {0, 0, 1000, 2000};
    state->size = sizes[(int)number(module)];
    state->free = state->size / 10;
    return ZE_RESULT_SUCCESS;
}
