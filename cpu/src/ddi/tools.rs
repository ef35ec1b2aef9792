//! The tables of the tools, system and runtime APIs (`zet`, `zes`, `zer`), which this runtime leaves as they are: a
//! loader that finds no function in them answers for it.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::answer::{answer, ensure};

macro_rules! empty {
    ($($getter:ident)*) => {$(
        /// Adds nothing to the table of this name.
        #[unsafe(no_mangle)]
        pub extern "C" fn $getter(
            version: sys::ze_api_version_t,
            table: *mut c_void,
        ) -> sys::ze_result_t {
            answer(|| {
                ensure(!table.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
                ensure(version.0 >> 16 == 1, sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION)
            })
        }
    )*};
}

empty! {
    zetGetCommandListExpProcAddrTable zetGetCommandListProcAddrTable zetGetContextProcAddrTable
    zetGetDebugProcAddrTable zetGetDeviceExpProcAddrTable zetGetDeviceProcAddrTable
    zetGetKernelProcAddrTable zetGetMetricDecoderExpProcAddrTable zetGetMetricExpProcAddrTable
    zetGetMetricGroupExpProcAddrTable zetGetMetricGroupProcAddrTable zetGetMetricProcAddrTable
    zetGetMetricProgrammableExpProcAddrTable zetGetMetricQueryPoolProcAddrTable
    zetGetMetricQueryProcAddrTable zetGetMetricStreamerProcAddrTable
    zetGetMetricTracerExpProcAddrTable zetGetModuleProcAddrTable zetGetTracerExpProcAddrTable

    zesGetDeviceExpProcAddrTable zesGetDeviceProcAddrTable zesGetDiagnosticsProcAddrTable
    zesGetDriverExpProcAddrTable zesGetDriverProcAddrTable zesGetEngineProcAddrTable
    zesGetFabricPortProcAddrTable zesGetFanProcAddrTable zesGetFirmwareExpProcAddrTable
    zesGetFirmwareProcAddrTable zesGetFrequencyProcAddrTable zesGetGlobalProcAddrTable
    zesGetLedProcAddrTable zesGetMemoryProcAddrTable zesGetOverclockProcAddrTable
    zesGetPerformanceFactorProcAddrTable zesGetPowerProcAddrTable zesGetPsuProcAddrTable
    zesGetRasExpProcAddrTable zesGetRasProcAddrTable zesGetSchedulerProcAddrTable
    zesGetStandbyProcAddrTable zesGetTemperatureProcAddrTable zesGetVFManagementExpProcAddrTable

    zerGetGlobalProcAddrTable
}

macro_rules! unsupported {
    ($($function:ident)*) => {$(
        /// Not served. SYCL 2024.2's adapters link the function by name, so it has to be there.
        #[unsafe(no_mangle)]
        pub extern "C" fn $function() -> sys::ze_result_t {
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        }
    )*};
}

unsupported! { zesDeviceEnumMemoryModules zesMemoryGetProperties zesMemoryGetState }
