//! Tracers: SYCL 2024.2 links to these functions and calls them only when tracing is requested. Nothing is traced.

use std::ffi::c_void;

use level_zero_sys as sys;

use crate::abi::arguments::output;
use crate::abi::result::{ensure, entry_point};

macro_rules! unsupported {
    ($($name:ident)*) => {$(
        /// Answers `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE`: nothing is traced.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> sys::ze_result_t {
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        }
    )*};
}

unsupported! {
    zelTracerCreate zelTracerDestroy zelTracerSetPrologues zelTracerSetEpilogues zelTracerSetEnabled
    zelDisableTracingLayer zelEnableTracingLayer
}

unsupported! {
    zelTracerCommandListAppendBarrierRegisterCallback zelTracerCommandListAppendEventResetRegisterCallback
    zelTracerCommandListAppendGraphExtRegisterCallback zelTracerCommandListAppendHostFunctionRegisterCallback
    zelTracerCommandListAppendImageCopyFromMemoryExtRegisterCallback
    zelTracerCommandListAppendImageCopyFromMemoryRegisterCallback
    zelTracerCommandListAppendImageCopyRegionRegisterCallback
    zelTracerCommandListAppendImageCopyRegisterCallback
    zelTracerCommandListAppendImageCopyToMemoryExtRegisterCallback
    zelTracerCommandListAppendImageCopyToMemoryRegisterCallback
    zelTracerCommandListAppendLaunchCooperativeKernelRegisterCallback
    zelTracerCommandListAppendLaunchKernelIndirectRegisterCallback
    zelTracerCommandListAppendLaunchKernelRegisterCallback
    zelTracerCommandListAppendLaunchKernelWithArgumentsRegisterCallback
    zelTracerCommandListAppendLaunchKernelWithParametersRegisterCallback
    zelTracerCommandListAppendLaunchMultipleKernelsIndirectRegisterCallback
    zelTracerCommandListAppendMemAdviseRegisterCallback
    zelTracerCommandListAppendMemoryCopyFromContextRegisterCallback
    zelTracerCommandListAppendMemoryCopyRegionRegisterCallback
    zelTracerCommandListAppendMemoryCopyRegisterCallback
    zelTracerCommandListAppendMemoryCopyWithParametersRegisterCallback
    zelTracerCommandListAppendMemoryFillRegisterCallback
    zelTracerCommandListAppendMemoryFillWithParametersRegisterCallback
    zelTracerCommandListAppendMemoryPrefetchRegisterCallback
    zelTracerCommandListAppendMemoryRangesBarrierRegisterCallback
    zelTracerCommandListAppendQueryKernelTimestampsRegisterCallback
    zelTracerCommandListAppendSignalEventRegisterCallback
    zelTracerCommandListAppendSignalExternalSemaphoreExtRegisterCallback
    zelTracerCommandListAppendWaitExternalSemaphoreExtRegisterCallback
    zelTracerCommandListAppendWaitOnEventsRegisterCallback
    zelTracerCommandListAppendWriteGlobalTimestampRegisterCallback
    zelTracerCommandListBeginCaptureIntoGraphExtRegisterCallback
    zelTracerCommandListBeginGraphCaptureExtRegisterCallback zelTracerCommandListCloseRegisterCallback
    zelTracerCommandListCreateCloneExpRegisterCallback zelTracerCommandListCreateImmediateRegisterCallback
    zelTracerCommandListCreateRegisterCallback zelTracerCommandListDestroyRegisterCallback
    zelTracerCommandListEndGraphCaptureExtRegisterCallback zelTracerCommandListGetContextHandleRegisterCallback
    zelTracerCommandListGetDeviceHandleRegisterCallback zelTracerCommandListGetFlagsRegisterCallback
    zelTracerCommandListGetGraphExtRegisterCallback zelTracerCommandListGetNextCommandIdExpRegisterCallback
    zelTracerCommandListGetNextCommandIdWithKernelsExpRegisterCallback
    zelTracerCommandListGetOrdinalRegisterCallback zelTracerCommandListHostSynchronizeRegisterCallback
    zelTracerCommandListImmediateAppendCommandListsExpRegisterCallback
    zelTracerCommandListImmediateAppendCommandListsWithParametersRegisterCallback
    zelTracerCommandListImmediateGetFlagsRegisterCallback zelTracerCommandListImmediateGetIndexRegisterCallback
    zelTracerCommandListImmediateGetModeRegisterCallback
    zelTracerCommandListImmediateGetPriorityRegisterCallback
    zelTracerCommandListIsGraphCaptureEnabledExtRegisterCallback zelTracerCommandListIsImmediateRegisterCallback
    zelTracerCommandListIsMutableExpRegisterCallback zelTracerCommandListResetRegisterCallback
    zelTracerCommandListUpdateMutableCommandKernelsExpRegisterCallback
    zelTracerCommandListUpdateMutableCommandSignalEventExpRegisterCallback
    zelTracerCommandListUpdateMutableCommandWaitEventsExpRegisterCallback
    zelTracerCommandListUpdateMutableCommandsExpRegisterCallback zelTracerCommandQueueCreateRegisterCallback
    zelTracerCommandQueueDestroyRegisterCallback zelTracerCommandQueueExecuteCommandListsRegisterCallback
    zelTracerCommandQueueGetFlagsRegisterCallback zelTracerCommandQueueGetIndexRegisterCallback
    zelTracerCommandQueueGetModeRegisterCallback zelTracerCommandQueueGetOrdinalRegisterCallback
    zelTracerCommandQueueGetPriorityRegisterCallback zelTracerCommandQueueSynchronizeRegisterCallback
    zelTracerContextCreateExRegisterCallback zelTracerContextCreateRegisterCallback
    zelTracerContextDestroyRegisterCallback zelTracerContextEvictImageRegisterCallback
    zelTracerContextEvictMemoryRegisterCallback zelTracerContextGetStatusRegisterCallback
    zelTracerContextMakeImageResidentRegisterCallback zelTracerContextMakeMemoryResidentRegisterCallback
    zelTracerContextSystemBarrierRegisterCallback zelTracerDeviceCanAccessPeerRegisterCallback
    zelTracerDeviceGetAggregatedCopyOffloadIncrementValueRegisterCallback
    zelTracerDeviceGetCachePropertiesRegisterCallback
    zelTracerDeviceGetCommandQueueGroupPropertiesRegisterCallback
    zelTracerDeviceGetComputePropertiesRegisterCallback
    zelTracerDeviceGetCounterBasedEventMaxValueRegisterCallback
    zelTracerDeviceGetExternalMemoryPropertiesRegisterCallback zelTracerDeviceGetFabricVertexExpRegisterCallback
    zelTracerDeviceGetGlobalTimestampsRegisterCallback zelTracerDeviceGetImagePropertiesRegisterCallback
    zelTracerDeviceGetMemoryAccessPropertiesRegisterCallback zelTracerDeviceGetMemoryPropertiesRegisterCallback
    zelTracerDeviceGetModulePropertiesRegisterCallback zelTracerDeviceGetP2PPropertiesRegisterCallback
    zelTracerDeviceGetPropertiesRegisterCallback zelTracerDeviceGetRegisterCallback
    zelTracerDeviceGetRootDeviceRegisterCallback zelTracerDeviceGetRuntimeRequirementsKeyRegisterCallback
    zelTracerDeviceGetRuntimeRequirementsRegisterCallback zelTracerDeviceGetStatusRegisterCallback
    zelTracerDeviceGetSubDevicesRegisterCallback zelTracerDeviceGetVectorWidthPropertiesExtRegisterCallback
    zelTracerDeviceImportExternalSemaphoreExtRegisterCallback zelTracerDevicePciGetPropertiesExtRegisterCallback
    zelTracerDeviceReleaseExternalSemaphoreExtRegisterCallback zelTracerDeviceReserveCacheExtRegisterCallback
    zelTracerDeviceSetCacheAdviceExtRegisterCallback zelTracerDeviceSynchronizeRegisterCallback
    zelTracerDeviceValidateRuntimeRequirementsRegisterCallback zelTracerDriverGetApiVersionRegisterCallback
    zelTracerDriverGetDefaultContextRegisterCallback zelTracerDriverGetExtensionFunctionAddressRegisterCallback
    zelTracerDriverGetExtensionPropertiesRegisterCallback zelTracerDriverGetIpcPropertiesRegisterCallback
    zelTracerDriverGetLastErrorDescriptionRegisterCallback zelTracerDriverGetPropertiesRegisterCallback
    zelTracerDriverGetRegisterCallback zelTracerDriverRTASFormatCompatibilityCheckExpRegisterCallback
    zelTracerDriverRTASFormatCompatibilityCheckExtRegisterCallback
    zelTracerEventCounterBasedCloseIpcHandleRegisterCallback zelTracerEventCounterBasedCreateRegisterCallback
    zelTracerEventCounterBasedGetDeviceAddressRegisterCallback
    zelTracerEventCounterBasedGetIpcHandleRegisterCallback
    zelTracerEventCounterBasedOpenIpcHandleRegisterCallback zelTracerEventCreateRegisterCallback
    zelTracerEventDestroyRegisterCallback zelTracerEventGetCounterBasedFlagsRegisterCallback
    zelTracerEventGetEventPoolRegisterCallback zelTracerEventGetSignalScopeRegisterCallback
    zelTracerEventGetWaitScopeRegisterCallback zelTracerEventHostResetRegisterCallback
    zelTracerEventHostSignalRegisterCallback zelTracerEventHostSynchronizeRegisterCallback
    zelTracerEventPoolCloseIpcHandleRegisterCallback zelTracerEventPoolCreateRegisterCallback
    zelTracerEventPoolDestroyRegisterCallback zelTracerEventPoolGetContextHandleRegisterCallback
    zelTracerEventPoolGetFlagsRegisterCallback zelTracerEventPoolGetIpcHandleRegisterCallback
    zelTracerEventPoolOpenIpcHandleRegisterCallback zelTracerEventPoolPutIpcHandleRegisterCallback
    zelTracerEventQueryKernelTimestampRegisterCallback zelTracerEventQueryKernelTimestampsExtRegisterCallback
    zelTracerEventQueryStatusRegisterCallback zelTracerEventQueryTimestampsExpRegisterCallback
    zelTracerExecutableGraphDestroyExtRegisterCallback zelTracerExecutableGraphGetSourceGraphExtRegisterCallback
    zelTracerFabricEdgeGetExpRegisterCallback zelTracerFabricEdgeGetPropertiesExpRegisterCallback
    zelTracerFabricEdgeGetVerticesExpRegisterCallback zelTracerFabricVertexGetDeviceExpRegisterCallback
    zelTracerFabricVertexGetExpRegisterCallback zelTracerFabricVertexGetPropertiesExpRegisterCallback
    zelTracerFabricVertexGetSubVerticesExpRegisterCallback zelTracerFenceCreateRegisterCallback
    zelTracerFenceDestroyRegisterCallback zelTracerFenceHostSynchronizeRegisterCallback
    zelTracerFenceQueryStatusRegisterCallback zelTracerFenceResetRegisterCallback
    zelTracerGetDefaultContextRegisterCallback zelTracerGetLastErrorDescriptionRegisterCallback
    zelTracerGraphCreateExtRegisterCallback zelTracerGraphDestroyExtRegisterCallback
    zelTracerGraphDumpContentsExtRegisterCallback zelTracerGraphGetPrimaryCommandListExtRegisterCallback
    zelTracerGraphInstantiateExtRegisterCallback zelTracerGraphIsEmptyExtRegisterCallback
    zelTracerGraphSetDestructionCallbackExtRegisterCallback zelTracerImageCreateRegisterCallback
    zelTracerImageDestroyRegisterCallback zelTracerImageGetAllocPropertiesExtRegisterCallback
    zelTracerImageGetDeviceOffsetExpRegisterCallback zelTracerImageGetMemoryPropertiesExpRegisterCallback
    zelTracerImageGetPropertiesRegisterCallback zelTracerImageViewCreateExpRegisterCallback
    zelTracerImageViewCreateExtRegisterCallback zelTracerInitDriversRegisterCallback
    zelTracerInitRegisterCallback zelTracerKernelCreateRegisterCallback zelTracerKernelDestroyRegisterCallback
    zelTracerKernelGetAllocationPropertiesExpRegisterCallback zelTracerKernelGetBinaryExpRegisterCallback
    zelTracerKernelGetIndirectAccessRegisterCallback zelTracerKernelGetNameRegisterCallback
    zelTracerKernelGetPropertiesRegisterCallback zelTracerKernelGetSourceAttributesRegisterCallback
    zelTracerKernelSchedulingHintExpRegisterCallback zelTracerKernelSetArgumentValueRegisterCallback
    zelTracerKernelSetCacheConfigRegisterCallback zelTracerKernelSetGlobalOffsetExpRegisterCallback
    zelTracerKernelSetGroupSizeRegisterCallback zelTracerKernelSetIndirectAccessRegisterCallback
    zelTracerKernelSuggestGroupSizeRegisterCallback
    zelTracerKernelSuggestMaxCooperativeGroupCountRegisterCallback zelTracerMemAllocDeviceRegisterCallback
    zelTracerMemAllocHostRegisterCallback zelTracerMemAllocSharedRegisterCallback
    zelTracerMemCloseIpcHandleRegisterCallback zelTracerMemFreeExtRegisterCallback
    zelTracerMemFreeRegisterCallback zelTracerMemGetAddressRangeRegisterCallback
    zelTracerMemGetAllocPropertiesRegisterCallback zelTracerMemGetAtomicAccessAttributeExpRegisterCallback
    zelTracerMemGetFileDescriptorFromIpcHandleExpRegisterCallback
    zelTracerMemGetIpcHandleFromFileDescriptorExpRegisterCallback zelTracerMemGetIpcHandleRegisterCallback
    zelTracerMemGetIpcHandleWithPropertiesRegisterCallback zelTracerMemGetPitchFor2dImageRegisterCallback
    zelTracerMemOpenIpcHandleRegisterCallback zelTracerMemPutIpcHandleRegisterCallback
    zelTracerMemSetAtomicAccessAttributeExpRegisterCallback zelTracerModuleBuildLogDestroyRegisterCallback
    zelTracerModuleBuildLogGetStringRegisterCallback zelTracerModuleCreateRegisterCallback
    zelTracerModuleDestroyRegisterCallback zelTracerModuleDynamicLinkRegisterCallback
    zelTracerModuleGetFunctionPointerRegisterCallback zelTracerModuleGetGlobalPointerRegisterCallback
    zelTracerModuleGetKernelNamesRegisterCallback zelTracerModuleGetNativeBinaryRegisterCallback
    zelTracerModuleGetPropertiesRegisterCallback zelTracerModuleInspectLinkageExtRegisterCallback
    zelTracerPhysicalMemCreateRegisterCallback zelTracerPhysicalMemDestroyRegisterCallback
    zelTracerPhysicalMemGetPropertiesRegisterCallback zelTracerRTASBuilderBuildExpRegisterCallback
    zelTracerRTASBuilderBuildExtRegisterCallback zelTracerRTASBuilderCommandListAppendCopyExtRegisterCallback
    zelTracerRTASBuilderCreateExpRegisterCallback zelTracerRTASBuilderCreateExtRegisterCallback
    zelTracerRTASBuilderDestroyExpRegisterCallback zelTracerRTASBuilderDestroyExtRegisterCallback
    zelTracerRTASBuilderGetBuildPropertiesExpRegisterCallback
    zelTracerRTASBuilderGetBuildPropertiesExtRegisterCallback
    zelTracerRTASParallelOperationCreateExpRegisterCallback
    zelTracerRTASParallelOperationCreateExtRegisterCallback
    zelTracerRTASParallelOperationDestroyExpRegisterCallback
    zelTracerRTASParallelOperationDestroyExtRegisterCallback
    zelTracerRTASParallelOperationGetPropertiesExpRegisterCallback
    zelTracerRTASParallelOperationGetPropertiesExtRegisterCallback
    zelTracerRTASParallelOperationJoinExpRegisterCallback zelTracerRTASParallelOperationJoinExtRegisterCallback
    zelTracerSamplerCreateRegisterCallback zelTracerSamplerDestroyRegisterCallback
    zelTracerTranslateDeviceHandleToIdentifierRegisterCallback
    zelTracerTranslateIdentifierToDeviceHandleRegisterCallback zelTracerVirtualMemFreeRegisterCallback
    zelTracerVirtualMemGetAccessAttributeRegisterCallback zelTracerVirtualMemMapRegisterCallback
    zelTracerVirtualMemQueryPageSizeRegisterCallback zelTracerVirtualMemReserveRegisterCallback
    zelTracerVirtualMemSetAccessAttributeRegisterCallback zelTracerVirtualMemUnmapRegisterCallback
}

/// Leaves a static loader's table of traced functions unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderTracingLayerInit(_table: *mut c_void) -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}

/// As [`zelLoaderTracingLayerInit`], for the runtime API.
#[unsafe(no_mangle)]
pub extern "C" fn zelLoaderZerTracingLayerInit(_table: *mut c_void) -> sys::ze_result_t {
    sys::ZE_RESULT_SUCCESS
}

/// Whether tracing is on: it is not.
///
/// # Safety
/// `enabled` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelGetTracingLayerState(enabled: *mut bool) -> sys::ze_result_t {
    entry_point(|| {
        // SAFETY: the caller vouches for the pointer.
        *unsafe { output(enabled) }? = false;
        Ok(())
    })
}

/// The table of the tracing API: create, destroy, set prologues, set epilogues, set enabled.
///
/// # Safety
/// `table` must be null or have room for five entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zelGetTracerApiProcAddrTable(
    version: sys::ze_api_version_t,
    table: *mut *const c_void,
) -> sys::ze_result_t {
    entry_point(|| {
        ensure(!table.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        ensure(
            version.0 >> 16 == 1,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_VERSION,
        )?;
        let entries = [
            zelTracerCreate as *const c_void,
            zelTracerDestroy as *const c_void,
            zelTracerSetPrologues as *const c_void,
            zelTracerSetEpilogues as *const c_void,
            zelTracerSetEnabled as *const c_void,
        ];
        for (index, entry) in entries.into_iter().enumerate() {
            // SAFETY: the caller vouches for room for five entries.
            unsafe { table.add(index).write(entry) };
        }
        Ok(())
    })
}
