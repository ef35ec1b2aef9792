//! The platform, and its devices: the GPUs of the runtime.

use std::ffi::c_void;

use opencl_sys as cl;
use opencl_sys::{cl_device_id, cl_device_type, cl_int, cl_platform_id, cl_uint};
use zeusm_process::Lazy;

use super::object::{Content, Object, pointer, text};
use crate::device::{self, Device};
use crate::opencl::Runtime;
use crate::system::processor;

/// A device of the front.
pub type FrontDevice = Object<FrontedDevice>;

/// The Level Zero device behind a device of the front, and its platform.
pub struct FrontedDevice {
    device: &'static Device,
    platform: &'static Object<Platform>,
}

/// The platform.
pub struct Platform {
    devices: Lazy<Vec<FrontDevice>>,
}

impl Platform {
    /// The platform, whose devices are looked for when they are asked for.
    pub const fn new() -> Self {
        Self {
            devices: Lazy::new(),
        }
    }
}

/// The GPUs; none where the front end of the processor's OpenCL emits no SPIR-V, as that of 2025.1.
fn devices(platform: &'static Object<Platform>) -> &'static [FrontDevice] {
    platform.value.devices.get_or_make(|| {
        let is_usable = Runtime::get().is_ok_and(|runtime| runtime.properties.year() >= 2026);
        let gpus = device::gpus().into_iter().filter(|_| is_usable);
        gpus.map(|device| FrontDevice {
            table: platform.table,
            value: FrontedDevice { device, platform },
        })
        .collect()
    })
}

impl Content for Platform {
    /// `clGetPlatformInfo`. The name is of Intel, whose libraries look for one.
    unsafe fn query(_: &Object<Self>, kind: cl_uint, _: *mut c_void) -> Option<Vec<u8>> {
        Some(text(match kind {
            cl::CL_PLATFORM_PROFILE => "FULL_PROFILE",
            cl::CL_PLATFORM_VERSION => "OpenCL 3.0 zeusm CPU runtime",
            cl::CL_PLATFORM_NAME => "Intel(R) OpenCL Graphics (zeusm CPU runtime)",
            cl::CL_PLATFORM_VENDOR => "Intel(R) Corporation",
            cl::CL_PLATFORM_EXTENSIONS => "cl_khr_icd",
            cl::CL_PLATFORM_ICD_SUFFIX_KHR => "ZEUSM",
            _ => return None,
        }))
    }
}

/// `clGetDeviceIDs`. Only those who ask for GPUs get the devices, as libraries do that want a compiler: SYCL asks for all kinds, and
/// would list what executes nothing.
///
/// # Safety
/// Pointers are null or valid, as OpenCL demands.
pub unsafe extern "C" fn device_ids(
    platform: cl_platform_id,
    kind: cl_device_type,
    room: cl_uint,
    places: *mut cl_device_id,
    count: *mut cl_uint,
) -> cl_int {
    let found = match kind {
        // SAFETY: the platform is a static object.
        cl::CL_DEVICE_TYPE_GPU => devices(unsafe { Object::of(platform) }),
        _ => &[],
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        if let Some(count) = count.as_mut() {
            *count = found.len() as cl_uint;
        }
        if !places.is_null() {
            for (index, device) in found.iter().take(room as usize).enumerate() {
                places.add(index).write(device.handle());
            }
        }
    }
    if found.is_empty() {
        cl::CL_DEVICE_NOT_FOUND
    } else {
        cl::CL_SUCCESS
    }
}

impl Content for FrontedDevice {
    /// `clGetDeviceInfo`: what tells the Level Zero device from others is that device's; the rest, which tells what the compiler
    /// takes, is that of the processor's OpenCL.
    unsafe fn query(object: &Object<Self>, kind: cl_uint, _: *mut c_void) -> Option<Vec<u8>> {
        let Self { device, platform } = &object.value;
        let number = |number: u32| number.to_ne_bytes().to_vec();
        Some(match kind {
            cl::CL_DEVICE_TYPE => cl::CL_DEVICE_TYPE_GPU.to_ne_bytes().to_vec(),
            cl::CL_DEVICE_VENDOR_ID => number(device::VENDOR),
            // By this and the vendor oneMKL finds the device; oneDNN by the UUID.
            cl::CL_DEVICE_MAX_CLOCK_FREQUENCY => number(processor::megahertz()),
            cl::CL_DEVICE_UUID_KHR => device.uuid().to_vec(),
            cl::CL_DEVICE_NAME => text(&device.name()),
            cl::CL_DEVICE_IP_VERSION_INTEL => number(device::architecture()),
            cl::CL_DEVICE_PLATFORM => pointer(platform.handle()),
            cl::CL_DEVICE_PARENT_DEVICE => pointer(std::ptr::null_mut()),
            _ => return Runtime::get().ok()?.device_info(kind),
        })
    }
}

/// `clCreateSubDevices`: there are none.
pub extern "C" fn sub_devices(
    _: cl_device_id,
    _: *const isize,
    _: cl_uint,
    _: *mut cl_device_id,
    _: *mut cl_uint,
) -> cl_int {
    cl::CL_DEVICE_PARTITION_FAILED
}

/// `clRetainDevice` and `clReleaseDevice`: devices live as long as the process.
pub extern "C" fn keep_device(_: cl_device_id) -> cl_int {
    cl::CL_SUCCESS
}
