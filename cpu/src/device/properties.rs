//! `zeDeviceGetProperties`.

use level_zero_sys as sys;
use level_zero_sys::extensions::{
    self, ze_device_readonly_memory_ext_properties_t as ReadOnlyMemory,
    ze_device_usablemem_size_ext_properties_t as UsableMemory,
    ze_mutable_command_list_exp_properties_t as MutableLists,
    ze_record_replay_graph_ext_properties_t as Graphs,
};

use super::list::{Device, have_sub_devices, is_discrete};
use crate::abi::arguments::text;
use crate::abi::entry::Out;
use crate::abi::result::ZeResult;
use crate::opencl::Runtime;
use crate::system::{clock, processor};

/// The parts of a command of a mutable list that can be changed: `ze_mutable_command_exp_flags_t` up to 1.17, except graphs.
pub const MUTABLE_FLAGS: u32 = 2 * extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION - 1;

/// SYCL's Level Zero adapters skip devices of other vendors.
pub const VENDOR: u32 = 0x8086;

/// The version of an architecture, as `ze_device_ip_version_ext_t` has it.
const fn version(architecture: u32, release: u32) -> u32 {
    architecture << 22 | release << 14
}

/// The version of the architecture. Libraries refuse one that they do not know: oneMKL and XLA have kernels for listed ones only.
///
/// - 20.1, Battlemage. From it on, SYCL uses its second adapter. The first one has defects where threads share a queue, host tasks
///   included, and takes longer for a launch.
/// - 12.70, Meteor Lake, where a GPU has sub-devices: SYCL's second adapter runs no kernels on them. From 12.60 on, the first one
///   uses immediate command lists: its batches of regular lists have defects, and are slower here.
/// - 255 and 13, which no GPU has, where Intel's OpenCL is of 2024 or before: compiled by it, oneMKL's kernels give wrong results.
pub fn architecture() -> u32 {
    // Other OpenCL runtimes' versions are no years.
    let is_old =
        Runtime::get().is_ok_and(|runtime| (2000..2025).contains(&runtime.properties.year()));
    match (have_sub_devices(), is_old) {
        (false, false) => version(20, 1),
        (false, true) => version(255, 0),
        (true, false) => version(12, 70),
        (true, true) => version(13, 0),
    }
}

/// How many threads an execution unit has: oneMKL's Fourier transforms divide by half of it, which is what is left on a GPU where a
/// thread takes two register files.
const THREADS: u32 = 2;

/// `zeDeviceGetProperties`: whatever the type, the name says CPU.
pub fn device_properties(
    device: &'static Device,
    mut properties: Out<'_, sys::ze_device_properties_t>,
) -> ZeResult {
    device.describe(&mut properties);
    if let Some(count) = properties.extension::<sys::ze_eu_count_ext_t>() {
        count.numTotalEUs = device.execution_units as u32;
    }
    if let Some(memory) = properties.extension::<ReadOnlyMemory>() {
        memory.readonlyCapability = extensions::ZE_DEVICE_READONLY_MEMORY_CAPABILITY_ENFORCED;
    }
    if let Some(version) = properties.extension::<extensions::ze_device_ip_version_ext_t>() {
        version.ipVersion = architecture();
    }
    if let Some(mutable) = properties.extension::<MutableLists>() {
        mutable.mutableCommandListFlags = 0;
        mutable.mutableCommandFlags = MUTABLE_FLAGS;
    }
    if let Some(usable) = properties.extension::<UsableMemory>() {
        usable.currUsableMemSize = device.free_memory();
    }
    if let Some(graphs) = properties.extension::<Graphs>() {
        graphs.graphFlags = extensions::ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH;
    }
    Ok(())
}

impl Device {
    /// Writes all that the first version of the structure has.
    pub fn describe(&self, properties: &mut sys::ze_device_properties_t) {
        let units = self.execution_units as u32;
        properties.type_ = self.type_;
        properties.vendorId = VENDOR;
        properties.deviceId = 0;
        properties.flags = sys::ZE_DEVICE_PROPERTY_FLAG_ONDEMANDPAGING.0;
        if !is_discrete() {
            properties.flags |= sys::ZE_DEVICE_PROPERTY_FLAG_INTEGRATED.0;
        }
        if self.root().is_some() {
            properties.flags |= sys::ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE.0;
        }
        properties.subdeviceId = self.sub_device_id;
        properties.coreClockRate = processor::megahertz();
        properties.maxMemAllocSize = self.max_allocation_size();
        properties.maxHardwareContexts = 1024;
        properties.maxCommandQueuePriority = 0;
        properties.numThreadsPerEU = THREADS;
        properties.physicalEUSimdWidth = processor::vector_bytes() / 4;
        properties.numEUsPerSubslice = units;
        properties.numSubslicesPerSlice = 1;
        properties.numSlices = 1;
        // The older structure wants nanoseconds per tick, the newer one ticks per second.
        properties.timerResolution = if properties.stype == sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES
        {
            clock::RESOLUTION
        } else {
            clock::FREQUENCY
        };
        properties.timestampValidBits = clock::VALID_BITS;
        properties.kernelTimestampValidBits = clock::VALID_BITS;
        properties.uuid.id = self.uuid();
        properties.name = text(&self.name());
    }
}
