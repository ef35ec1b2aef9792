//! `zeDeviceGetProperties`.

use level_zero_sys as sys;

use super::expect;
use crate::abi::arguments::{chain, properties, structures, text};
use crate::abi::result::Answer;
use crate::system::clock;
use crate::system::{memory, processor};

structures! {
    sys::ze_device_properties_t =
        sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES | sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
    sys::ze_eu_count_ext_t = sys::ZE_STRUCTURE_TYPE_EU_COUNT_EXT;
}

/// SYCL's Level Zero adapters pass over devices of any other vendor.
const VENDOR: u32 = 0x8086;

/// `zeDeviceGetProperties`: a GPU to the API, since SYCL takes no other type, and a CPU by its name. A processor is
/// an execution unit with one thread.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn device_properties(
    device: sys::ze_device_handle_t,
    told: *mut sys::ze_device_properties_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    let units = processor::count() as u32;
    told.type_ = sys::ZE_DEVICE_TYPE_GPU;
    told.vendorId = VENDOR;
    told.deviceId = 0;
    told.flags =
        sys::ZE_DEVICE_PROPERTY_FLAG_INTEGRATED.0 | sys::ZE_DEVICE_PROPERTY_FLAG_ONDEMANDPAGING.0;
    told.subdeviceId = 0;
    told.coreClockRate = processor::megahertz();
    told.maxMemAllocSize = memory::most_at_once();
    told.maxHardwareContexts = 1024;
    told.maxCommandQueuePriority = 0;
    told.numThreadsPerEU = 1;
    told.physicalEUSimdWidth = processor::vector_bytes() / 4;
    told.numEUsPerSubslice = units;
    told.numSubslicesPerSlice = 1;
    told.numSlices = 1;
    // The older structure wants nanoseconds per tick, the newer one ticks per second.
    told.timerResolution = if told.stype == sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES {
        clock::RESOLUTION
    } else {
        clock::FREQUENCY
    };
    told.timestampValidBits = clock::VALID_BITS;
    told.kernelTimestampValidBits = clock::VALID_BITS;
    told.uuid.id = processor::identity();
    told.name = text(&format!("zeusm CPU runtime ({})", processor::model()));
    // SAFETY: the caller vouches for the chain.
    for link in unsafe { chain(told.pNext) } {
        if let Some(count) = link.output::<sys::ze_eu_count_ext_t>() {
            count.numTotalEUs = units;
        }
    }
    Ok(())
}
