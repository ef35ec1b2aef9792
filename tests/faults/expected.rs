//! The failures that an operation may hide, and those that may leak an object, with the reasons.

use zeusm::sys;

/// Whether an operation may succeed although this call failed.
pub fn may_pass(function: &str, code: sys::ze_result_t) -> bool {
    match function {
        // Objects are released in `drop`, which cannot report failures.
        "zeContextDestroy"
        | "zeCommandListDestroy"
        | "zeEventPoolDestroy"
        | "zeEventDestroy"
        | "zeMemFree"
        | "zeMemPutIpcHandle"
        | "zeMemCloseIpcHandle" => true,
        // The query precedes a wait, which reports a persistent failure.
        "zeEventQueryStatus" => true,
        // Old drivers without this function return these codes; an event is used instead.
        "zeCommandListHostSynchronize" => {
            code == sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
                || code == sys::ZE_RESULT_ERROR_UNINITIALIZED
        }
        // The pools return their free memory, and the call is repeated.
        "zeMemAllocHost" | "zeMemAllocDevice" | "zeMemAllocShared" => true,
        "zeCommandListCreateImmediate"
        | "zeDeviceGetCommandQueueGroupProperties"
        | "zeEventPoolCreate"
        | "zeEventCreate"
        | "zeEventHostReset" => {
            code == sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
                || code == sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
        }
        // The status is only used to detect a lost device.
        "zeDeviceGetStatus" => code != sys::ZE_RESULT_ERROR_DEVICE_LOST,
        // Without the property, concurrent access to shared memory is assumed to be unsupported.
        "zeDeviceGetMemoryAccessProperties" => true,
        // Without the sizes, the driver alone refuses what is too large; without the property, no export is asked for.
        "zeDeviceGetMemoryProperties" | "zeDeviceGetExternalMemoryProperties" => true,
        // A copy without peer access is staged through the host.
        "zeDeviceCanAccessPeer" | "zeCommandListAppendMemoryCopyFromContext" => {
            code == sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        }
        _ => false,
    }
}

/// Whether a caller that cannot report the failure retries instead.
pub fn is_retried(function: &str) -> bool {
    function == "zeEventHostSynchronize" || function == "zeEventHostSignal"
}

/// Whether an object may leak in the driver after this call failed.
pub fn may_leak(function: &str) -> bool {
    matches!(
        function,
        "zeContextDestroy"
            | "zeCommandListDestroy"
            | "zeEventPoolDestroy"
            | "zeEventDestroy"
            | "zeMemFree"
            | "zeMemPutIpcHandle"
            | "zeMemCloseIpcHandle"
    )
}
