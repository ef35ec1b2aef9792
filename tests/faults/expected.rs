//! Which failures are not told, and which leave something behind; with the reason for each.

use zeusm::sys;

/// Whether an operation may succeed although this call failed.
pub fn may_pass(function: &str, code: sys::ze_result_t) -> bool {
    match function {
        // What is given back is given back by a drop, which has nobody to tell; the driver keeps it then.
        "zeContextDestroy"
        | "zeCommandListDestroy"
        | "zeEventPoolDestroy"
        | "zeEventDestroy"
        | "zeMemFree"
        | "zeMemPutIpcHandle"
        | "zeMemCloseIpcHandle" => true,
        // Asked whether something is done before it is waited for; the wait tells the same failure.
        "zeEventQueryStatus" => true,
        // Drivers older than this function answer so, and an event is waited for instead.
        "zeCommandListHostSynchronize" => {
            code == sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
                || code == sys::ZE_RESULT_ERROR_UNINITIALIZED
        }
        // A pool that is refused memory gives back what it does not use, and asks once more.
        "zeMemAllocHost" | "zeMemAllocDevice" | "zeMemAllocShared" => true,
        // Asked only whether the device is lost.
        "zeDeviceGetStatus" => code != sys::ZE_RESULT_ERROR_DEVICE_LOST,
        // Without the answer, concurrent use of shared memory is taken to be impossible.
        "zeDeviceGetMemoryAccessProperties" => true,
        // What the driver cannot do directly takes the way through the host.
        "zeDeviceCanAccessPeer" | "zeCommandListAppendMemoryCopyFromContext" => {
            code == sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        }
        _ => false,
    }
}

/// Whether who has nobody to tell does it again instead, until it succeeds or the device is lost for good.
pub fn is_repeated(function: &str) -> bool {
    function == "zeEventHostSynchronize" || function == "zeEventHostSignal"
}

/// Whether a thing may stay in the driver after this call failed.
pub fn may_stay(function: &str) -> bool {
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
