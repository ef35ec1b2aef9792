//! The properties of the OpenCL CPU device.

use std::ffi::c_void;

use opencl_sys as cl;
use opencl_sys::{cl_device_id, cl_device_info, cl_platform_id};

use super::api::Api;

/// The largest work-group size that is reported. A CPU supports larger ones, but programs for GPUs launch as many
/// work-items as the square of this number (oneMKL does), and no GPU has more.
pub const LARGEST_GROUP: usize = 1024;

/// The device's properties that Level Zero asks for. Sizes are in bytes.
#[derive(Clone, Debug, Default)]
pub struct Properties {
    /// The device's name.
    pub name: String,
    /// The runtime's version.
    pub driver: String,
    /// The extensions, by name.
    pub extensions: Vec<String>,
    /// The most work-items in one work-group.
    pub max_group_size: usize,
    /// The most work-items in each dimension of a work-group.
    pub max_item_sizes: [usize; 3],
    /// The local memory of one work-group.
    pub local_memory: u64,
    /// The maximal size of all arguments of a kernel.
    pub max_argument_bytes: usize,
    /// The highest SPIR-V version supported, major and minor.
    pub spirv: (u16, u16),
    /// Whether it builds for OpenCL C 2.0, which OpenCL 3.0 leaves to the runtime.
    pub has_opencl_c_2: bool,
    /// The sub-group sizes that a kernel may ask for; none without `cl_intel_required_subgroup_size`.
    pub sub_group_sizes: Vec<usize>,
    /// CL_DEVICE_HALF_FP_CONFIG; 0 without half precision.
    pub half: u64,
    /// CL_DEVICE_SINGLE_FP_CONFIG.
    pub single: u64,
    /// CL_DEVICE_DOUBLE_FP_CONFIG; 0 without double precision.
    pub double: u64,
    /// Atomic operations on numbers of 16, 32 and 64 bits (cl_ext_float_atomics); 0 for those without any.
    pub float_atomics: [u64; 3],
    /// The room for output of printf.
    pub printf_buffer: usize,
    /// The limits of images; all 0 without images.
    pub images: ImageLimits,
}

/// The limits of images and samplers.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImageLimits {
    /// The most pixels of a one-dimensional image.
    pub line: usize,
    /// The most pixels in each dimension of a two-dimensional image.
    pub plane: usize,
    /// The most pixels in each dimension of a three-dimensional image.
    pub volume: usize,
    /// The most pixels of an image in a buffer.
    pub buffer: usize,
    /// The most images in an array.
    pub layers: usize,
    /// The most samplers that a kernel can have.
    pub samplers: usize,
    /// The most images that a kernel can read.
    pub read: usize,
    /// The most images that a kernel can write.
    pub written: usize,
}

impl Properties {
    /// Whether the device lists the extension.
    pub fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|name| name == extension)
    }

    /// The year of Intel's release, with which its version begins; of another runtime the first number, or 0.
    pub fn year(&self) -> u32 {
        let year = self.driver.split('.').next();
        year.and_then(|year| year.parse().ok()).unwrap_or(0)
    }
}

/// CL_DEVICE_HALF_, _SINGLE_ and _DOUBLE_FP_ATOMIC_CAPABILITIES_EXT.
const FLOAT_ATOMICS: [cl_device_info; 3] = [0x4233, 0x4231, 0x4232];

/// An OpenCL device of a library, which may be unsuitable.
#[derive(Clone, Copy)]
pub struct Candidate {
    pub platform: cl_platform_id,
    pub device: cl_device_id,
}

impl Candidate {
    /// Every CPU device of every platform.
    pub fn all(api: &Api) -> Vec<Self> {
        let mut found = Vec::new();
        for platform in listed(std::ptr::null_mut(), |count, platforms, total| {
            // SAFETY: the pointers are a buffer of `count` handles and a place for the total.
            unsafe { (api.clGetPlatformIDs)(count, platforms, total) }
        }) {
            let devices = listed(std::ptr::null_mut(), |count, devices, total| {
                // SAFETY: as above; the platform is one of the library's.
                unsafe {
                    (api.clGetDeviceIDs)(platform, cl::CL_DEVICE_TYPE_CPU, count, devices, total)
                }
            });
            found.extend(devices.into_iter().map(|device| Self { platform, device }));
        }
        found
    }

    /// The bytes of a property; `None` when the query fails.
    pub fn query(self, api: &Api, what: cl_device_info) -> Option<Vec<u8>> {
        // SAFETY: `try_info` asks for the size first, and the buffer has it.
        try_info(|size, value, needed| unsafe {
            (api.clGetDeviceInfo)(self.device, what, size, value, needed)
        })
    }

    fn text(self, api: &Api, what: cl_device_info) -> String {
        text(&self.query(api, what).unwrap_or_default())
    }

    fn number(self, api: &Api, what: cl_device_info) -> u64 {
        number(&self.query(api, what).unwrap_or_default())
    }

    fn sizes(self, api: &Api, what: cl_device_info) -> Vec<usize> {
        sizes(&self.query(api, what).unwrap_or_default())
    }

    /// Reads all properties; a query that the device does not support gives 0 or an empty value.
    pub fn properties(self, api: &Api) -> Properties {
        let size = |what| usize::try_from(self.number(api, what)).unwrap_or(usize::MAX);
        let items = self.sizes(api, cl::CL_DEVICE_MAX_WORK_ITEM_SIZES);
        let item = |dimension| {
            items
                .get(dimension)
                .map_or(1, |most: &usize| (*most).min(LARGEST_GROUP))
        };
        let mut properties = Properties {
            name: self.text(api, cl::CL_DEVICE_NAME),
            driver: self.text(api, cl::CL_DRIVER_VERSION),
            extensions: self
                .text(api, cl::CL_DEVICE_EXTENSIONS)
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            max_group_size: size(cl::CL_DEVICE_MAX_WORK_GROUP_SIZE).min(LARGEST_GROUP),
            max_item_sizes: [item(0), item(1), item(2)],
            local_memory: self.number(api, cl::CL_DEVICE_LOCAL_MEM_SIZE),
            max_argument_bytes: size(cl::CL_DEVICE_MAX_PARAMETER_SIZE),
            spirv: spirv_version(&self.text(api, cl::CL_DEVICE_IL_VERSION)),
            has_opencl_c_2: versions(&self.query(api, cl::CL_DEVICE_OPENCL_C_ALL_VERSIONS))
                .any(|version| version == (2, 0)),
            sub_group_sizes: self.sizes(api, cl::CL_DEVICE_SUB_GROUP_SIZES_INTEL),
            half: self.number(api, cl::CL_DEVICE_HALF_FP_CONFIG),
            single: self.number(api, cl::CL_DEVICE_SINGLE_FP_CONFIG),
            double: self.number(api, cl::CL_DEVICE_DOUBLE_FP_CONFIG),
            float_atomics: FLOAT_ATOMICS.map(|what| self.number(api, what)),
            printf_buffer: size(cl::CL_DEVICE_PRINTF_BUFFER_SIZE),
            images: self.image_limits(api),
        };
        // PoCL answers the query without the extension, and has no sub-groups.
        if !properties.has("cl_intel_required_subgroup_size") {
            properties.sub_group_sizes.clear();
        }
        properties
    }

    fn image_limits(self, api: &Api) -> ImageLimits {
        if self.number(api, cl::CL_DEVICE_IMAGE_SUPPORT) == 0 {
            return ImageLimits::default();
        }
        let size = |what| usize::try_from(self.number(api, what)).unwrap_or(usize::MAX);
        let least = |dimensions: &[cl_device_info]| {
            let sizes = dimensions.iter().map(|what| size(*what));
            sizes.min().unwrap_or(0)
        };
        ImageLimits {
            line: size(cl::CL_DEVICE_IMAGE2D_MAX_WIDTH),
            plane: least(&[
                cl::CL_DEVICE_IMAGE2D_MAX_WIDTH,
                cl::CL_DEVICE_IMAGE2D_MAX_HEIGHT,
            ]),
            volume: least(&[
                cl::CL_DEVICE_IMAGE3D_MAX_WIDTH,
                cl::CL_DEVICE_IMAGE3D_MAX_HEIGHT,
                cl::CL_DEVICE_IMAGE3D_MAX_DEPTH,
            ]),
            buffer: size(cl::CL_DEVICE_IMAGE_MAX_BUFFER_SIZE),
            layers: size(cl::CL_DEVICE_IMAGE_MAX_ARRAY_SIZE),
            samplers: size(cl::CL_DEVICE_MAX_SAMPLERS),
            read: size(cl::CL_DEVICE_MAX_READ_IMAGE_ARGS),
            written: size(cl::CL_DEVICE_MAX_WRITE_IMAGE_ARGS),
        }
    }
}

/// `SPIR-V_1.2 SPIR-V_1.4 ...`: the highest; (0, 0) without any.
fn spirv_version(text: &str) -> (u16, u16) {
    let versions = text.split_whitespace().filter_map(|version| {
        let (major, minor) = version.strip_prefix("SPIR-V_")?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    versions.max().unwrap_or((0, 0))
}

/// The versions, major and minor, in an array of `cl_name_version`: 32 bits and a name of 64 bytes each.
fn versions(bytes: &Option<Vec<u8>>) -> impl Iterator<Item = (u32, u32)> {
    let entries = bytes.as_deref().unwrap_or_default().as_chunks::<68>().0;
    entries.iter().filter_map(|entry| {
        let version = u32::from_le_bytes(*entry.first_chunk()?);
        Some((version >> 22, version >> 12 & 0x3ff))
    })
}

/// What OpenCL lists by count, in place of copies of `blank`; empty when the call fails, as it does again without a count.
pub fn listed<T: Clone>(blank: T, mut call: impl FnMut(u32, *mut T, *mut u32) -> i32) -> Vec<T> {
    let mut count = 0;
    call(0, std::ptr::null_mut(), &raw mut count);
    let mut all = vec![blank; count as usize];
    if call(count, all.as_mut_ptr(), std::ptr::null_mut()) != cl::CL_SUCCESS {
        all.clear();
    }
    all
}

/// The bytes of an information query; empty when it fails.
pub fn info(call: impl FnMut(usize, *mut c_void, *mut usize) -> i32) -> Vec<u8> {
    try_info(call).unwrap_or_default()
}

/// The same: first the size, then the value. Without a size, the second call fails, too.
fn try_info(mut call: impl FnMut(usize, *mut c_void, *mut usize) -> i32) -> Option<Vec<u8>> {
    let mut size = 0;
    call(0, std::ptr::null_mut(), &raw mut size);
    let mut bytes = vec![0_u8; size];
    let code = call(size, bytes.as_mut_ptr().cast(), std::ptr::null_mut());
    (code == cl::CL_SUCCESS).then_some(bytes)
}

/// A string as OpenCL gives it, without the null at its end.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_end_matches('\0')
        .trim()
        .to_owned()
}

/// A number of up to 8 bytes.
pub fn number(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    for (to, from) in whole.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(whole)
}

/// An array of `size_t`.
pub fn sizes(bytes: &[u8]) -> Vec<usize> {
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|&chunk| usize::from_le_bytes(chunk))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_spirv_version_counts() {
        assert_eq!(spirv_version("SPIR-V_1.0 SPIR-V_1.10 SPIR-V_1.4 "), (1, 10));
        assert_eq!(spirv_version(""), (0, 0));
        assert_eq!(spirv_version("LLVM_17 SPIR-V_1"), (0, 0));
    }

    #[test]
    fn versions_stand_before_their_names() {
        let entry = |version: u32| [&version.to_le_bytes()[..], &[7; 64]].concat();
        let both = Some([entry(1 << 22 | 2 << 12), entry(2 << 22 | 5)].concat());
        assert_eq!(versions(&both).collect::<Vec<_>>(), [(1, 2), (2, 0)]);
        assert_eq!(versions(&None).next(), None);
    }
}
