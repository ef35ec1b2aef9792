//! System management, of which the memory of a device is implemented. The entries are those of `zes_ddi.h`.

use level_zero_sys::*;

use super::ddi;
use crate::{device, driver, sysman};

ddi! {
    zesGetGlobalProcAddrTable {
        5 zesInit(flags: u32) => sysman::init;
    }

    zesGetDriverProcAddrTable {
        0 zesDriverEventListen;
        1 zesDriverEventListenEx;
        5 zesDriverGet(count: *mut u32, drivers: *mut ze_driver_handle_t) => driver::get;
    }

    zesGetDeviceProcAddrTable {
        0 zesDeviceGetProperties(
            device: zes_device_handle_t,
            properties: *mut zes_device_properties_t,
        ) => sysman::device_properties;
        0 zesDeviceGetState;
        0 zesDeviceReset;
        0 zesDeviceProcessesGetState;
        0 zesDevicePciGetProperties;
        0 zesDevicePciGetState;
        0 zesDevicePciGetBars;
        0 zesDevicePciGetStats;
        0 zesDeviceEnumDiagnosticTestSuites;
        0 zesDeviceEnumEngineGroups;
        0 zesDeviceEventRegister;
        0 zesDeviceEnumFabricPorts;
        0 zesDeviceEnumFans;
        0 zesDeviceEnumFirmwares;
        0 zesDeviceEnumFrequencyDomains;
        0 zesDeviceEnumLeds;
        0 zesDeviceEnumMemoryModules(
            device: zes_device_handle_t,
            count: *mut u32,
            modules: *mut zes_mem_handle_t,
        ) => sysman::memory_modules;
        0 zesDeviceEnumPerformanceFactorDomains;
        0 zesDeviceEnumPowerDomains;
        0 zesDeviceGetCardPowerDomain;
        0 zesDeviceEnumPsus;
        0 zesDeviceEnumRasErrorSets;
        0 zesDeviceEnumSchedulers;
        0 zesDeviceEnumStandbyDomains;
        0 zesDeviceEnumTemperatureSensors;
        4 zesDeviceEccAvailable;
        4 zesDeviceEccConfigurable;
        4 zesDeviceGetEccState;
        4 zesDeviceSetEccState;
        5 zesDeviceGet(
            driver: ze_driver_handle_t,
            count: *mut u32,
            devices: *mut ze_device_handle_t,
        ) => device::get;
    }

    zesGetMemoryProcAddrTable {
        0 zesMemoryGetProperties(
            module: zes_mem_handle_t,
            properties: *mut zes_mem_properties_t,
        ) => sysman::memory_properties;
        0 zesMemoryGetState(
            module: zes_mem_handle_t,
            state: *mut zes_mem_state_t,
        ) => sysman::memory_state;
        0 zesMemoryGetBandwidth;
    }
}
