//! What kernels may ask of the device: group sizes, floating point, vectors, images.

use level_zero_sys as sys;

use super::expect;
use crate::answer::Answer;
use crate::arguments::{properties, structures};
use crate::machine::processor;
use crate::newer::ze_device_vector_width_properties_ext_t;

structures! {
    sys::ze_device_compute_properties_t = sys::ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES;
    sys::ze_device_module_properties_t = sys::ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES;
    sys::ze_device_image_properties_t = sys::ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES;
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
    told.maxTotalGroupSize = 1024;
    told.maxGroupSizeX = 1024;
    told.maxGroupSizeY = 1024;
    told.maxGroupSizeZ = 1024;
    told.maxGroupCountX = u32::MAX;
    told.maxGroupCountY = u32::MAX;
    told.maxGroupCountZ = u32::MAX;
    told.maxSharedLocalMemory = 32 << 10;
    told.numSubGroupSizes = 1;
    told.subGroupSizes = [0; 8];
    if let Some(size) = told.subGroupSizes.first_mut() {
        *size = processor::vector_bytes() / 4;
    }
    Ok(())
}

/// `zeDeviceGetModuleProperties`: no module can be made yet, so no format, no arithmetic.
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
    told.spirvVersionSupported = 0;
    told.flags = 0;
    told.fp16flags = 0;
    told.fp32flags = 0;
    told.fp64flags = 0;
    told.maxArgumentsSize = 0;
    told.printfBufferSize = 0;
    told.nativeKernelSupported.id = [0; 16];
    Ok(())
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
    told: *mut ze_device_vector_width_properties_ext_t,
) -> Answer {
    expect(device)?;
    // SAFETY: the caller vouches for the pointer.
    let count = unsafe { crate::arguments::output(count) }?;
    let room = *count;
    *count = 1;
    if room == 0 || told.is_null() {
        return Ok(());
    }
    // SAFETY: the caller vouches for the pointer.
    let told = unsafe { properties(told) }?;
    let bytes = processor::vector_bytes();
    *told = ze_device_vector_width_properties_ext_t {
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
