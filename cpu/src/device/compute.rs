//! What kernels may ask of the device: group sizes, floating point, vectors, images.

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::expect;
use crate::abi::arguments::{properties, structures};
use crate::abi::result::Answer;
use crate::opencl::{self, Runtime};
use crate::system::processor;

structures! {
    sys::ze_device_compute_properties_t = sys::ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES;
    sys::ze_device_module_properties_t = sys::ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES;
    sys::ze_device_image_properties_t = sys::ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES;
    extensions::ze_device_vector_width_properties_ext_t =
        extensions::ZE_STRUCTURE_TYPE_DEVICE_VECTOR_WIDTH_PROPERTIES_EXT;
}

/// `zeDeviceGetComputeProperties`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn compute(
    device: sys::ze_device_handle_t,
    told: *mut sys::ze_device_compute_properties_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    // What a machine without a compiler says matters little, as nothing can be launched on it.
    let found = Runtime::get().ok().map(Runtime::properties);
    let [x, y, z] = found
        .map_or([1; 3], |found| found.max_item_sizes)
        .map(number);
    told.maxTotalGroupSize = found.map_or(1, |found| number(found.max_group_size));
    told.maxGroupSizeX = x;
    told.maxGroupSizeY = y;
    told.maxGroupSizeZ = z;
    told.maxGroupCountX = u32::MAX;
    told.maxGroupCountY = u32::MAX;
    told.maxGroupCountZ = u32::MAX;
    let local = found.map_or(0, |found| found.local_memory);
    told.maxSharedLocalMemory = u32::try_from(local).unwrap_or(u32::MAX);
    let sizes = found.map_or(&[][..], |found| &found.sub_group_sizes);
    told.subGroupSizes = [0; 8];
    told.numSubGroupSizes = 0;
    // Callers divide by the smallest, so there is always one.
    let one = [1];
    let sizes = if sizes.is_empty() { &one } else { sizes };
    for (place, size) in told.subGroupSizes.iter_mut().zip(sizes) {
        *place = number(*size);
        told.numSubGroupSizes += 1;
    }
    Ok(())
}

/// `zeDeviceGetModuleProperties`: what the compiler takes; without one no format and no arithmetic, but
/// numbers of every width to hold.
///
/// # Safety
/// As for [`compute`].
pub unsafe fn module(
    device: sys::ze_device_handle_t,
    told: *mut sys::ze_device_module_properties_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    let none = opencl::Properties::default();
    let runtime = Runtime::get();
    let found = runtime
        .as_ref()
        .map_or(&none, |runtime| runtime.properties());
    // Without a compiler memory may hold numbers of any width all the same, which packages take these flags for.
    let has = |config: u64| config != 0 || runtime.is_err();
    let (major, minor) = found.spirv;
    told.spirvVersionSupported = u32::from(major) << 16 | u32::from(minor);
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
    told.flags = flags
        .iter()
        .filter(|(_, has)| *has)
        .map(|(flag, _)| flag.0)
        .sum();
    told.fp16flags = arithmetic(found.half);
    told.fp32flags = arithmetic(found.single);
    told.fp64flags = arithmetic(found.double);
    told.maxArgumentsSize = number(found.max_argument_bytes);
    told.printfBufferSize = number(found.printf_buffer);
    told.nativeKernelSupported.id = [0; 16];
    Ok(())
}

/// OpenCL's description of floating point as Level Zero's: the same bits but for the last two, which change places.
fn arithmetic(config: u64) -> u32 {
    let (soft, rounded) = (config >> 6 & 1, config >> 7 & 1);
    (config as u32 & 0x3f) | (rounded as u32) << 6 | (soft as u32) << 7
}

/// A size that a 32-bit field can say.
fn number(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// `zeDeviceGetImageProperties`: there are no images.
///
/// # Safety
/// As for [`compute`].
pub unsafe fn image(
    device: sys::ze_device_handle_t,
    told: *mut sys::ze_device_image_properties_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    told.maxImageDims1D = 0;
    told.maxImageDims2D = 0;
    told.maxImageDims3D = 0;
    told.maxImageBufferSize = 0;
    told.maxImageArraySlices = 0;
    told.maxSamplers = 0;
    told.maxReadImageArgs = 0;
    told.maxWriteImageArgs = 0;
    Ok(())
}

/// `zeDeviceGetVectorWidthPropertiesExt`: one entry, the processor's vector registers.
///
/// # Safety
/// As for [`compute`]; `told` must be null or have room for `*count` entries.
pub unsafe fn vector_width(
    device: sys::ze_device_handle_t,
    count: *mut u32,
    told: *mut extensions::ze_device_vector_width_properties_ext_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointer.
    let count = unsafe { crate::abi::arguments::output(count) }?;
    let room = *count;
    *count = 1;
    if room == 0 || told.is_null() {
        return Ok(());
    }
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    let bytes = processor::vector_bytes();
    *told = extensions::ze_device_vector_width_properties_ext_t {
        stype: told.stype,
        pNext: told.pNext,
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
    Ok(())
}
