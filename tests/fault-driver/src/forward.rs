//! Forwarding of the exported functions, independent of their signatures.

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::{callers, faults, held, owned};

/// The decision about a call, in the two result registers of the C ABI.
#[repr(C)]
struct Decision {
    /// The function to jump to; 0 to return.
    target: usize,
    /// The result code to return.
    answer: usize,
}

/// Decides whether a call of the function with this index in [`NAMES`] is forwarded or fails; `object` is its first argument.
extern "C" fn decide(index: usize, caller: *const c_void, object: usize) -> Decision {
    let name = NAMES[index];
    let ours = index >= FIRST_THAT_FAILS && !callers::is_sycl(caller);
    if ours && let Some(code) = faults::fails(name, object) {
        return Decision {
            target: 0,
            answer: code as usize,
        };
    }
    let own = || owned::function(name).or_else(|| held::function(name));
    match ours.then(own).flatten().or_else(|| crate::behind(name)) {
        Some(function) => Decision {
            target: function as usize,
            answer: 0,
        },
        None => Decision {
            target: 0,
            answer: level_zero_sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE.0 as usize,
        },
    }
}

/// The common entry of all forwarded functions, with the index in `eax`: jumps to the function of the CPU runtime with all
/// arguments in place, or returns a result.
///
/// # Safety
/// Only for the functions that [`forward!`] makes.
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!(
        // Saves the argument registers, and rax to keep the stack aligned to 16 bytes.
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "mov rdx, rdi",
        "mov edi, eax",
        // The return address, above the seven saved registers.
        "mov rsi, [rsp + 56]",
        "call {decide}",
        "mov r11, rax",
        "mov r10, rdx",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test r11, r11",
        "jz 2f",
        "jmp r11",
        "2:",
        "mov rax, r10",
        "ret",
        decide = sym decide,
    )
}

/// Exports functions that [`enter`] forwards. Those of the second list are counted and can fail.
macro_rules! forward {
    (pass { $($passed:ident)* } count { $($counted:ident)* }) => {
        #[allow(non_camel_case_types)]
        enum Number {
            $($passed,)*
            First,
            $($counted,)*
        }

        /// The names by index.
        const NAMES: &[&str] = &[$(stringify!($passed),)* "", $(stringify!($counted),)*];
        const FIRST_THAT_FAILS: usize = Number::First as usize;

        $(forward!($passed);)*
        $(forward!($counted);)*
    };
    ($name:ident) => {
        /// Forwards the call, or returns the injected result code.
        ///
        /// # Safety
        /// As for the function of this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "mov eax, {number}",
                "jmp {enter}",
                number = const Number::$name as u32,
                enter = sym enter,
            )
        }
    };
}

forward! {
    // The functions of a loader, and the function tables.
    pass {
        zeGetCommandListExpProcAddrTable zeGetCommandListProcAddrTable zeGetCommandQueueProcAddrTable
        zeGetContextProcAddrTable zeGetDeviceExpProcAddrTable zeGetDeviceProcAddrTable zeGetDriverExpProcAddrTable
        zeGetDriverProcAddrTable zeGetEventExpProcAddrTable zeGetEventPoolProcAddrTable zeGetEventProcAddrTable
        zeGetExecutableGraphProcAddrTable zeGetFabricEdgeExpProcAddrTable zeGetFabricVertexExpProcAddrTable
        zeGetFenceProcAddrTable zeGetGlobalProcAddrTable zeGetGraphProcAddrTable zeGetImageExpProcAddrTable
        zeGetImageProcAddrTable zeGetKernelExpProcAddrTable zeGetKernelProcAddrTable zeGetMemExpProcAddrTable
        zeGetMemProcAddrTable zeGetModuleBuildLogProcAddrTable zeGetModuleProcAddrTable zeGetPhysicalMemProcAddrTable
        zeGetRTASBuilderExpProcAddrTable zeGetRTASBuilderProcAddrTable zeGetRTASParallelOperationExpProcAddrTable
        zeGetRTASParallelOperationProcAddrTable zeGetSamplerProcAddrTable zeGetVirtualMemProcAddrTable
        zeLoaderGetTracingHandle zeLoaderInit zelGetLoaderVersion zelGetTracerApiProcAddrTable zelLoaderGetVersion
        zelLoaderGetVersions zelLoaderGetVersionsInternal zelLoaderTranslateHandle zelLoaderTranslateHandleInternal
        zelTracerCreate zelTracerDestroy zelTracerSetEnabled zelTracerSetEpilogues zelTracerSetPrologues
        zerGetGlobalProcAddrTable zesDeviceEnumMemoryModules zesGetDeviceExpProcAddrTable zesGetDeviceProcAddrTable
        zesGetDiagnosticsProcAddrTable zesGetDriverExpProcAddrTable zesGetDriverProcAddrTable zesGetEngineProcAddrTable
        zesGetFabricPortProcAddrTable zesGetFanProcAddrTable zesGetFirmwareExpProcAddrTable zesGetFirmwareProcAddrTable
        zesGetFrequencyProcAddrTable zesGetGlobalProcAddrTable zesGetLedProcAddrTable zesGetMemoryProcAddrTable
        zesGetOverclockProcAddrTable zesGetPerformanceFactorProcAddrTable zesGetPowerProcAddrTable zesGetPsuProcAddrTable
        zesGetRasExpProcAddrTable zesGetRasProcAddrTable zesGetSchedulerProcAddrTable zesGetStandbyProcAddrTable
        zesGetTemperatureProcAddrTable zesGetVFManagementExpProcAddrTable zesMemoryGetProperties zesMemoryGetState
        zetGetCommandListExpProcAddrTable zetGetCommandListProcAddrTable zetGetContextProcAddrTable
        zetGetDebugProcAddrTable zetGetDeviceExpProcAddrTable zetGetDeviceProcAddrTable zetGetKernelProcAddrTable
        zetGetMetricDecoderExpProcAddrTable zetGetMetricExpProcAddrTable zetGetMetricGroupExpProcAddrTable
        zetGetMetricGroupProcAddrTable zetGetMetricProcAddrTable zetGetMetricProgrammableExpProcAddrTable
        zetGetMetricQueryPoolProcAddrTable zetGetMetricQueryProcAddrTable zetGetMetricStreamerProcAddrTable
        zetGetMetricTracerExpProcAddrTable zetGetModuleProcAddrTable zetGetTracerExpProcAddrTable
    }
    count {
        zeCommandListAppendBarrier zeCommandListAppendEventReset zeCommandListAppendGraphExt
        zeCommandListAppendHostFunction zeCommandListAppendImageCopy zeCommandListAppendImageCopyFromMemory
        zeCommandListAppendImageCopyFromMemoryExt zeCommandListAppendImageCopyRegion
        zeCommandListAppendImageCopyToMemory zeCommandListAppendImageCopyToMemoryExt
        zeCommandListAppendLaunchCooperativeKernel zeCommandListAppendLaunchKernel
        zeCommandListAppendLaunchKernelIndirect zeCommandListAppendLaunchKernelWithArguments
        zeCommandListAppendLaunchKernelWithParameters zeCommandListAppendLaunchMultipleKernelsIndirect
        zeCommandListAppendMemAdvise zeCommandListAppendMemoryCopy zeCommandListAppendMemoryCopyFromContext
        zeCommandListAppendMemoryCopyRegion zeCommandListAppendMemoryCopyWithParameters
        zeCommandListAppendMemoryFill zeCommandListAppendMemoryFillWithParameters zeCommandListAppendMemoryPrefetch
        zeCommandListAppendMemoryRangesBarrier zeCommandListAppendQueryKernelTimestamps
        zeCommandListAppendSignalEvent zeCommandListAppendSignalExternalSemaphoreExt
        zeCommandListAppendWaitExternalSemaphoreExt zeCommandListAppendWaitOnEvents
        zeCommandListAppendWriteGlobalTimestamp zeCommandListBeginCaptureIntoGraphExt
        zeCommandListBeginGraphCaptureExt zeCommandListClose zeCommandListCreate zeCommandListCreateCloneExp
        zeCommandListCreateImmediate zeCommandListDestroy zeCommandListEndGraphCaptureExt
        zeCommandListGetContextHandle zeCommandListGetDeviceHandle zeCommandListGetFlags zeCommandListGetGraphExt
        zeCommandListGetNextCommandIdExp zeCommandListGetNextCommandIdWithKernelsExp zeCommandListGetOrdinal
        zeCommandListHostSynchronize zeCommandListImmediateAppendCommandListsExp
        zeCommandListImmediateAppendCommandListsWithParameters zeCommandListImmediateGetFlags
        zeCommandListImmediateGetIndex zeCommandListImmediateGetMode zeCommandListImmediateGetPriority
        zeCommandListIsGraphCaptureEnabledExt zeCommandListIsImmediate zeCommandListIsMutableExp zeCommandListReset
        zeCommandListUpdateMutableCommandKernelsExp zeCommandListUpdateMutableCommandSignalEventExp
        zeCommandListUpdateMutableCommandWaitEventsExp zeCommandListUpdateMutableCommandsExp zeCommandQueueCreate
        zeCommandQueueDestroy zeCommandQueueExecuteCommandLists zeCommandQueueGetFlags zeCommandQueueGetIndex
        zeCommandQueueGetMode zeCommandQueueGetOrdinal zeCommandQueueGetPriority zeCommandQueueSynchronize
        zeContextCreate zeContextCreateEx zeContextDestroy zeContextEvictImage zeContextEvictMemory
        zeContextGetStatus zeContextMakeImageResident zeContextMakeMemoryResident zeContextSystemBarrier
        zeDeviceCanAccessPeer zeDeviceGet zeDeviceGetAggregatedCopyOffloadIncrementValue zeDeviceGetCacheProperties
        zeDeviceGetCommandQueueGroupProperties zeDeviceGetComputeProperties zeDeviceGetCounterBasedEventMaxValue
        zeDeviceGetExternalMemoryProperties zeDeviceGetFabricVertexExp zeDeviceGetGlobalTimestamps
        zeDeviceGetImageProperties zeDeviceGetMemoryAccessProperties zeDeviceGetMemoryProperties
        zeDeviceGetModuleProperties zeDeviceGetP2PProperties zeDeviceGetProperties zeDeviceGetRootDevice
        zeDeviceGetRuntimeRequirements zeDeviceGetRuntimeRequirementsKey zeDeviceGetStatus zeDeviceGetSubDevices
        zeDeviceGetVectorWidthPropertiesExt zeDeviceImportExternalSemaphoreExt zeDevicePciGetPropertiesExt
        zeDeviceReleaseExternalSemaphoreExt zeDeviceReserveCacheExt zeDeviceSetCacheAdviceExt zeDeviceSynchronize
        zeDeviceValidateRuntimeRequirements zeDriverGet zeDriverGetApiVersion zeDriverGetDefaultContext
        zeDriverGetExtensionFunctionAddress zeDriverGetExtensionProperties zeDriverGetIpcProperties
        zeDriverGetLastErrorDescription zeDriverGetProperties zeDriverRTASFormatCompatibilityCheckExp
        zeDriverRTASFormatCompatibilityCheckExt zeEventCounterBasedCloseIpcHandle zeEventCounterBasedCreate
        zeEventCounterBasedGetDeviceAddress zeEventCounterBasedGetIpcHandle zeEventCounterBasedOpenIpcHandle
        zeEventCreate zeEventDestroy zeEventGetCounterBasedFlags zeEventGetEventPool zeEventGetSignalScope
        zeEventGetWaitScope zeEventHostReset zeEventHostSignal zeEventHostSynchronize zeEventPoolCloseIpcHandle
        zeEventPoolCreate zeEventPoolDestroy zeEventPoolGetContextHandle zeEventPoolGetFlags zeEventPoolGetIpcHandle
        zeEventPoolOpenIpcHandle zeEventPoolPutIpcHandle zeEventQueryKernelTimestamp zeEventQueryKernelTimestampsExt
        zeEventQueryStatus zeEventQueryTimestampsExp zeExecutableGraphDestroyExt zeExecutableGraphGetSourceGraphExt
        zeFabricEdgeGetExp zeFabricEdgeGetPropertiesExp zeFabricEdgeGetVerticesExp zeFabricVertexGetDeviceExp
        zeFabricVertexGetExp zeFabricVertexGetPropertiesExp zeFabricVertexGetSubVerticesExp zeFenceCreate
        zeFenceDestroy zeFenceHostSynchronize zeFenceQueryStatus zeFenceReset zeGraphCreateExt zeGraphDestroyExt
        zeGraphDumpContentsExt zeGraphGetPrimaryCommandListExt zeGraphInstantiateExt zeGraphIsEmptyExt
        zeGraphSetDestructionCallbackExt zeImageCreate zeImageDestroy zeImageGetAllocPropertiesExt
        zeImageGetDeviceOffsetExp zeImageGetMemoryPropertiesExp zeImageGetProperties zeImageViewCreateExp
        zeImageViewCreateExt zeInit zeInitDrivers zeKernelCreate zeKernelDestroy zeKernelGetAllocationPropertiesExp
        zeKernelGetBinaryExp zeKernelGetIndirectAccess zeKernelGetName zeKernelGetProperties
        zeKernelGetSourceAttributes zeKernelSchedulingHintExp zeKernelSetArgumentValue zeKernelSetCacheConfig
        zeKernelSetGlobalOffsetExp zeKernelSetGroupSize zeKernelSetIndirectAccess zeKernelSuggestGroupSize
        zeKernelSuggestMaxCooperativeGroupCount zeMemAllocDevice zeMemAllocHost zeMemAllocShared zeMemCloseIpcHandle
        zeMemFree zeMemFreeExt zeMemGetAddressRange zeMemGetAllocProperties zeMemGetAtomicAccessAttributeExp
        zeMemGetFileDescriptorFromIpcHandleExp zeMemGetIpcHandle zeMemGetIpcHandleFromFileDescriptorExp
        zeMemGetIpcHandleWithProperties zeMemGetPitchFor2dImage zeMemOpenIpcHandle zeMemPutIpcHandle
        zeMemSetAtomicAccessAttributeExp zeModuleBuildLogDestroy zeModuleBuildLogGetString zeModuleCreate
        zeModuleDestroy zeModuleDynamicLink zeModuleGetFunctionPointer zeModuleGetGlobalPointer
        zeModuleGetKernelNames zeModuleGetNativeBinary zeModuleGetProperties zeModuleInspectLinkageExt
        zePhysicalMemCreate zePhysicalMemDestroy zePhysicalMemGetProperties zeRTASBuilderBuildExp
        zeRTASBuilderBuildExt zeRTASBuilderCommandListAppendCopyExt zeRTASBuilderCreateExp zeRTASBuilderCreateExt
        zeRTASBuilderDestroyExp zeRTASBuilderDestroyExt zeRTASBuilderGetBuildPropertiesExp
        zeRTASBuilderGetBuildPropertiesExt zeRTASParallelOperationCreateExp zeRTASParallelOperationCreateExt
        zeRTASParallelOperationDestroyExp zeRTASParallelOperationDestroyExt zeRTASParallelOperationGetPropertiesExp
        zeRTASParallelOperationGetPropertiesExt zeRTASParallelOperationJoinExp zeRTASParallelOperationJoinExt
        zeSamplerCreate zeSamplerDestroy zeVirtualMemFree zeVirtualMemGetAccessAttribute zeVirtualMemMap
        zeVirtualMemQueryPageSize zeVirtualMemReserve zeVirtualMemSetAccessAttribute zeVirtualMemUnmap
    }
}
