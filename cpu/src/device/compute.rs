//! Properties of the device for kernels: group sizes, floating point, vectors, images.

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::list::Device;
use crate::abi::entry::{Out, Room};
use crate::abi::result::ZeResult;
use crate::opencl::{self, ImageLimits, Runtime};
use crate::system::processor;

/// The sizes of sub-groups of Intel's GPUs. OpenCL for processors has more (4 to 64); XLA takes the largest for the device's own.
const SUB_GROUPS: [u32; 2] = [16, 32];

/// `zeDeviceGetComputeProperties`.
pub fn compute(
    _: &'static Device,
    mut properties: Out<'_, sys::ze_device_compute_properties_t>,
) -> ZeResult {
    // Without a compiler the values do not matter, as nothing can be launched.
    let found = Runtime::get().ok().map(|runtime| &runtime.properties);
    let [x, y, z] = found
        .map_or([1; 3], |found| found.max_item_sizes)
        .map(number);
    properties.maxTotalGroupSize = found.map_or(1, |found| number(found.max_group_size));
    properties.maxGroupSizeX = x;
    properties.maxGroupSizeY = y;
    properties.maxGroupSizeZ = z;
    properties.maxGroupCountX = u32::MAX;
    properties.maxGroupCountY = u32::MAX;
    properties.maxGroupCountZ = u32::MAX;
    let local = found.map_or(0, |found| found.local_memory);
    properties.maxSharedLocalMemory = u32::try_from(local).unwrap_or(u32::MAX);
    let sizes = found.map_or(&[][..], |found| &found.sub_group_sizes);
    let known = SUB_GROUPS
        .iter()
        .filter(|size| sizes.contains(&(**size as usize)));
    let known: Vec<u32> = known.copied().collect();
    // Callers divide by the smallest size, so there is always one.
    properties.subGroupSizes = [1, 0, 0, 0, 0, 0, 0, 0];
    properties.subGroupSizes[..known.len()].copy_from_slice(&known);
    properties.numSubGroupSizes = number(known.len().max(1));
    Ok(())
}

/// `zeDeviceGetModuleProperties`: the compiler's capabilities; without a compiler no format and no arithmetic, but
/// every width of floating point.
pub fn module(
    _: &'static Device,
    mut properties: Out<'_, sys::ze_device_module_properties_t>,
) -> ZeResult {
    let none = opencl::Properties::default();
    let runtime = Runtime::get();
    let found = runtime
        .as_ref()
        .map_or(&none, |runtime| &runtime.properties);
    // Without a compiler, packages still read these flags as the element types that memory can hold.
    let has = |config: u64| config != 0 || runtime.is_err();
    let (major, minor) = found.spirv;
    properties.spirvVersionSupported = u32::from(major) << 16 | u32::from(minor);
    let flags = [
        (sys::ZE_DEVICE_MODULE_FLAG_FP16, has(found.half)),
        (sys::ZE_DEVICE_MODULE_FLAG_FP64, has(found.double)),
        (
            sys::ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS,
            found.has("cl_khr_int64_base_atomics") && found.has("cl_khr_int64_extended_atomics"),
        ),
        (
            sys::ZE_DEVICE_MODULE_FLAG_DP4A,
            found.has("cl_khr_integer_dot_product"),
        ),
    ];
    properties.flags = flags
        .iter()
        .filter(|(_, has)| *has)
        .map(|(flag, _)| flag.0)
        .sum();
    properties.fp16flags = arithmetic(found.half);
    properties.fp32flags = arithmetic(found.single);
    properties.fp64flags = arithmetic(found.double);
    properties.maxArgumentsSize = number(found.max_argument_bytes);
    properties.printfBufferSize = number(found.printf_buffer);
    properties.nativeKernelSupported.id = [0; 16];
    if let Some(atomics) = properties.extension::<sys::ze_float_atomic_ext_properties_t>() {
        // OpenCL and Level Zero have the same flags.
        let [half, single, double] = found.float_atomics.map(|flags| flags as u32);
        (atomics.fp16Flags, atomics.fp32Flags, atomics.fp64Flags) = (half, single, double);
    }
    if let Some(hints) = properties.extension::<sys::ze_scheduling_hint_exp_properties_t>() {
        hints.schedulingHintFlags = 0;
    }
    Ok(())
}

/// Converts OpenCL's floating point flags to Level Zero's: the same bits, but with the last two swapped.
fn arithmetic(config: u64) -> u32 {
    let (soft, rounded) = (config >> 6 & 1, config >> 7 & 1);
    (config as u32 & 0x3f) | (rounded as u32) << 6 | (soft as u32) << 7
}

/// A size for a 32-bit field, saturated.
fn number(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// `zeDeviceGetImageProperties`: OpenCL's limits; without OpenCL, or without images there, all are 0.
pub fn image(
    _: &'static Device,
    mut properties: Out<'_, sys::ze_device_image_properties_t>,
) -> ZeResult {
    let limits = Runtime::get().map_or_else(|_| ImageLimits::default(), |it| it.properties.images);
    properties.maxImageDims1D = number(limits.line);
    properties.maxImageDims2D = number(limits.plane);
    properties.maxImageDims3D = number(limits.volume);
    // OpenCL limits the pixels, and a pixel has at least one byte.
    properties.maxImageBufferSize = limits.buffer as u64;
    properties.maxImageArraySlices = number(limits.layers);
    properties.maxSamplers = number(limits.samplers);
    properties.maxReadImageArgs = number(limits.read);
    properties.maxWriteImageArgs = number(limits.written);
    Ok(())
}

/// `zeDeviceGetVectorWidthPropertiesExt`: one entry, the processor's vector registers.
pub fn vector_width(
    _: &'static Device,
    properties: Room<'_, extensions::ze_device_vector_width_properties_ext_t>,
) -> ZeResult {
    for mut properties in properties.structures(1)? {
        let bytes = processor::vector_bytes();
        *properties = extensions::ze_device_vector_width_properties_ext_t {
            stype: properties.stype,
            pNext: properties.pNext,
            vector_width_size: bytes,
            preferred_vector_width_char: bytes,
            preferred_vector_width_short: bytes / 2,
            preferred_vector_width_int: bytes / 4,
            preferred_vector_width_long: bytes / 8,
            preferred_vector_width_float: bytes / 4,
            preferred_vector_width_double: bytes / 8,
            preferred_vector_width_half: 0,
            native_vector_width_char: bytes,
            native_vector_width_short: bytes / 2,
            native_vector_width_int: bytes / 4,
            native_vector_width_long: bytes / 8,
            native_vector_width_float: bytes / 4,
            native_vector_width_double: bytes / 8,
            native_vector_width_half: 0,
        };
    }
    Ok(())
}
