//! The tools and runtime APIs (`zet`, `zer`) and most of system management (`zes`), which this runtime does not implement. It
//! leaves their tables empty, and the loader returns errors for them. In the loader's place it exports the functions and
//! returns the same errors, since a program that is linked against the loader needs every symbol (at start-up, under
//! `LD_BIND_NOW`).

use std::ffi::c_void;
use std::ptr;

use level_zero_sys as sys;

use super::absent;
use crate::abi::result::{ensure, entry_point};

macro_rules! empty {
    ($($getter:ident)*) => {$(
        /// Leaves the table of this name empty.
        #[unsafe(no_mangle)]
        pub extern "C" fn $getter(
            version: sys::ze_api_version_t,
            table: *mut c_void,
        ) -> sys::ze_result_t {
            entry_point(|| {
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

    zesGetDeviceExpProcAddrTable zesGetDiagnosticsProcAddrTable
    zesGetDriverExpProcAddrTable zesGetEngineProcAddrTable
    zesGetFabricPortProcAddrTable zesGetFanProcAddrTable zesGetFirmwareExpProcAddrTable
    zesGetFirmwareProcAddrTable zesGetFrequencyProcAddrTable
    zesGetLedProcAddrTable zesGetOverclockProcAddrTable
    zesGetPerformanceFactorProcAddrTable zesGetPowerProcAddrTable zesGetPsuProcAddrTable
    zesGetRasExpProcAddrTable zesGetRasProcAddrTable zesGetSchedulerProcAddrTable
    zesGetStandbyProcAddrTable zesGetTemperatureProcAddrTable zesGetVFManagementExpProcAddrTable

    zerGetGlobalProcAddrTable
}

absent! {
    zesDeviceEnumActiveVFExp zesDeviceEnumEnabledVFExp zesDeviceEnumOverclockDomains
    zesDeviceGetOverclockControls zesDeviceGetOverclockDomains zesDeviceGetSubDevicePropertiesExp
    zesDevicePciLinkSpeedUpdateExt zesDeviceReadOverclockState zesDeviceResetExt zesDeviceResetOverclockSettings
    zesDeviceSetOverclockWaiver zesDiagnosticsGetProperties zesDiagnosticsGetTests
    zesDiagnosticsRunTests zesDriverGetDeviceByUuidExp
    zesDriverGetExtensionFunctionAddress zesDriverGetExtensionProperties zesEngineGetActivity
    zesEngineGetActivityExt zesEngineGetProperties zesFabricPortGetConfig zesFabricPortGetFabricErrorCounters
    zesFabricPortGetLinkType zesFabricPortGetMultiPortThroughput zesFabricPortGetProperties
    zesFabricPortGetState zesFabricPortGetThroughput zesFabricPortSetConfig zesFanGetConfig zesFanGetProperties
    zesFanGetState zesFanSetDefaultMode zesFanSetFixedSpeedMode zesFanSetSpeedTableMode zesFirmwareFlash
    zesFirmwareGetConsoleLogs zesFirmwareGetFlashProgress zesFirmwareGetProperties
    zesFirmwareGetSecurityVersionExp zesFirmwareSetSecurityVersionExp zesFrequencyGetAvailableClocks
    zesFrequencyGetProperties zesFrequencyGetRange zesFrequencyGetState zesFrequencyGetThrottleTime
    zesFrequencyOcGetCapabilities zesFrequencyOcGetFrequencyTarget zesFrequencyOcGetIccMax zesFrequencyOcGetMode
    zesFrequencyOcGetTjMax zesFrequencyOcGetVoltageTarget zesFrequencyOcSetFrequencyTarget
    zesFrequencyOcSetIccMax zesFrequencyOcSetMode zesFrequencyOcSetTjMax zesFrequencyOcSetVoltageTarget
    zesFrequencySetRange zesLedGetProperties zesLedGetState zesLedSetColor zesLedSetState
    zesOverclockGetControlCurrentValue
    zesOverclockGetControlPendingValue zesOverclockGetControlState zesOverclockGetDomainControlProperties
    zesOverclockGetDomainProperties zesOverclockGetDomainVFProperties zesOverclockGetVFPointValues
    zesOverclockSetControlUserValue zesOverclockSetVFPointValues zesPerformanceFactorGetConfig
    zesPerformanceFactorGetProperties zesPerformanceFactorSetConfig zesPowerGetEnergyCounter
    zesPowerGetEnergyThreshold zesPowerGetLimits zesPowerGetLimitsExt zesPowerGetLimitsExt2
    zesPowerGetProperties zesPowerGetUsage zesPowerSetEnergyThreshold zesPowerSetLimits zesPowerSetLimitsExt
    zesPowerSetLimitsExt2 zesPsuGetProperties zesPsuGetState zesRasClearStateExp zesRasGetConfig
    zesRasGetConfigExp zesRasGetProperties zesRasGetState zesRasGetStateExp zesRasGetStateExp2
    zesRasGetSupportedCategoriesExp zesRasSetConfig zesRasSetConfigExp zesSchedulerGetCurrentMode
    zesSchedulerGetProperties zesSchedulerGetTimeoutModeProperties zesSchedulerGetTimesliceModeProperties
    zesSchedulerSetComputeUnitDebugMode zesSchedulerSetExclusiveMode zesSchedulerSetTimeoutMode
    zesSchedulerSetTimesliceMode zesStandbyGetMode zesStandbyGetProperties zesStandbySetMode
    zesTemperatureGetConfig zesTemperatureGetProperties zesTemperatureGetState zesTemperatureSetConfig
    zesVFManagementGetVFCapabilitiesExp zesVFManagementGetVFCapabilitiesExp2
    zesVFManagementGetVFEngineUtilizationExp zesVFManagementGetVFEngineUtilizationExp2
    zesVFManagementGetVFMemoryUtilizationExp zesVFManagementGetVFMemoryUtilizationExp2
    zesVFManagementGetVFPropertiesExp zesVFManagementSetVFTelemetryModeExp
    zesVFManagementSetVFTelemetrySamplingIntervalExp
}

absent! {
    zetCommandListAppendMarkerExp zetCommandListAppendMetricMemoryBarrier zetCommandListAppendMetricQueryBegin
    zetCommandListAppendMetricQueryEnd zetCommandListAppendMetricStreamerMarker zetContextActivateMetricGroups
    zetDebugAcknowledgeEvent zetDebugAttach zetDebugDetach zetDebugGetRegisterSetProperties
    zetDebugGetThreadRegisterSetProperties zetDebugInterrupt zetDebugReadEvent zetDebugReadMemory
    zetDebugReadRegisters zetDebugResume zetDebugWriteMemory zetDebugWriteRegisters
    zetDeviceCreateMetricGroupsFromMetricsExp zetDeviceDisableMetricsExp zetDeviceEnableMetricsExp
    zetDeviceGetConcurrentMetricGroupsExp zetDeviceGetDebugProperties zetKernelGetProfileInfo
    zetMetricCreateFromProgrammableExp zetMetricCreateFromProgrammableExp2 zetMetricDecoderCreateExp
    zetMetricDecoderDestroyExp zetMetricDecoderGetDecodableMetricsExp zetMetricDestroyExp zetMetricGet
    zetMetricGetProperties zetMetricGroupAddMetricExp zetMetricGroupCalculateMetricExportDataExp
    zetMetricGroupCalculateMetricValues zetMetricGroupCalculateMultipleMetricValuesExp zetMetricGroupCloseExp
    zetMetricGroupCreateExp zetMetricGroupDestroyExp zetMetricGroupGet zetMetricGroupGetExportDataExp
    zetMetricGroupGetGlobalTimestampsExp zetMetricGroupGetProperties zetMetricGroupRemoveMetricExp
    zetMetricProgrammableGetExp zetMetricProgrammableGetParamInfoExp zetMetricProgrammableGetParamValueInfoExp
    zetMetricProgrammableGetPropertiesExp zetMetricQueryCreate zetMetricQueryDestroy zetMetricQueryGetData
    zetMetricQueryPoolCreate zetMetricQueryPoolDestroy zetMetricQueryReset zetMetricStreamerClose
    zetMetricStreamerOpen zetMetricStreamerReadData zetMetricTracerCreateExp zetMetricTracerDecodeExp
    zetMetricTracerDestroyExp zetMetricTracerDisableExp zetMetricTracerEnableExp zetMetricTracerReadDataExp
    zetModuleGetDebugInfo zetTracerExpCreate zetTracerExpDestroy zetTracerExpSetEnabled zetTracerExpSetEpilogues
    zetTracerExpSetPrologues
}

absent! { zerGetLastErrorDescription }

/// No identifier: the runtime API is not implemented.
#[unsafe(no_mangle)]
pub extern "C" fn zerTranslateDeviceHandleToIdentifier() -> u32 {
    u32::MAX
}

/// No device: see [`zerTranslateDeviceHandleToIdentifier`].
#[unsafe(no_mangle)]
pub extern "C" fn zerTranslateIdentifierToDeviceHandle() -> *mut c_void {
    ptr::null_mut()
}

/// No context: see [`zerTranslateDeviceHandleToIdentifier`].
#[unsafe(no_mangle)]
pub extern "C" fn zerGetDefaultContext() -> *mut c_void {
    ptr::null_mut()
}
