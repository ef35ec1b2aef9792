//! Images, samplers and their memory, for the tests.

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

use level_zero_sys as sys;
use level_zero_sys::{ZE_RESULT_SUCCESS as OK, ze_result_t};

use super::super::runtime::{Runtime, call, must};
use super::programs;
use crate::common::newer;

type CreateView = unsafe extern "C" fn(
    sys::ze_context_handle_t,
    sys::ze_device_handle_t,
    *const sys::ze_image_desc_t,
    sys::ze_image_handle_t,
    *mut sys::ze_image_handle_t,
) -> ze_result_t;

pub const TYPES: [sys::ze_image_type_t; 6] = [
    sys::ZE_IMAGE_TYPE_1D,
    sys::ZE_IMAGE_TYPE_1DARRAY,
    sys::ZE_IMAGE_TYPE_2D,
    sys::ZE_IMAGE_TYPE_2DARRAY,
    sys::ZE_IMAGE_TYPE_3D,
    sys::ZE_IMAGE_TYPE_BUFFER,
];

pub use sys::{
    ZE_IMAGE_FORMAT_SWIZZLE_0 as ZERO, ZE_IMAGE_FORMAT_SWIZZLE_1 as ONE,
    ZE_IMAGE_FORMAT_SWIZZLE_A as A, ZE_IMAGE_FORMAT_SWIZZLE_B as B, ZE_IMAGE_FORMAT_SWIZZLE_G as G,
    ZE_IMAGE_FORMAT_SWIZZLE_R as R, ZE_IMAGE_FORMAT_SWIZZLE_X as ANY,
};

/// Layout, number of components, and bytes of one.
pub const LAYOUTS: [(sys::ze_image_format_layout_t, usize, usize); 9] = [
    (sys::ZE_IMAGE_FORMAT_LAYOUT_8, 1, 1),
    (sys::ZE_IMAGE_FORMAT_LAYOUT_16, 1, 2),
    (sys::ZE_IMAGE_FORMAT_LAYOUT_32, 1, 4),
    (sys::ZE_IMAGE_FORMAT_LAYOUT_8_8, 2, 1),
    (sys::ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8, 4, 1),
    (sys::ZE_IMAGE_FORMAT_LAYOUT_16_16, 2, 2),
    (sys::ZE_IMAGE_FORMAT_LAYOUT_16_16_16_16, 4, 2),
    (sys::ZE_IMAGE_FORMAT_LAYOUT_32_32, 2, 4),
    (sys::ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32, 4, 4),
];

pub const CHANNELS: [sys::ze_image_format_type_t; 5] = [
    sys::ZE_IMAGE_FORMAT_TYPE_UINT,
    sys::ZE_IMAGE_FORMAT_TYPE_SINT,
    sys::ZE_IMAGE_FORMAT_TYPE_UNORM,
    sys::ZE_IMAGE_FORMAT_TYPE_SNORM,
    sys::ZE_IMAGE_FORMAT_TYPE_FLOAT,
];

/// A runtime with images and the tests' module, built once.
pub struct Setup {
    pub runtime: Runtime,
    pub module: sys::ze_module_handle_t,
}

// SAFETY: handles are numbers, and the library is thread-safe.
unsafe impl Sync for Setup {}
// SAFETY: as above.
unsafe impl Send for Setup {}

impl Setup {
    pub fn get() -> Option<&'static Self> {
        static SETUP: OnceLock<Option<Setup>> = OnceLock::new();
        let make = || {
            let runtime = Runtime::with_compiler()?;
            let module = runtime.build(&programs::module(), &[]).unwrap();
            Some(Self { runtime, module })
        };
        SETUP.get_or_init(make).as_ref()
    }

    /// An image, or the code of the error.
    pub fn image(&self, desc: &sys::ze_image_desc_t) -> Result<Image<'_>, ze_result_t> {
        let runtime = &self.runtime;
        let mut image = ptr::null_mut();
        let (context, device) = (runtime.context, runtime.device);
        match call!(
            runtime,
            zeImageCreate(context, device, desc, &raw mut image)
        ) {
            OK => Ok(Image {
                setup: self,
                handle: image,
                size: size(desc),
            }),
            code => Err(code),
        }
    }

    /// A view of an image, or the code of the error.
    pub fn view(
        &self,
        image: &Image,
        desc: &sys::ze_image_desc_t,
    ) -> Result<Image<'_>, ze_result_t> {
        let (runtime, mut view) = (&self.runtime, ptr::null_mut());
        // SAFETY: the specification gives the function this type, and the pointers are valid.
        let code = unsafe {
            let create: CreateView = newer(c"zeImageViewCreateExt");
            let (context, device) = (runtime.context, runtime.device);
            create(context, device, desc, image.handle, &raw mut view)
        };
        if code != OK {
            return Err(code);
        }
        Ok(Image {
            setup: self,
            handle: view,
            size: size(desc),
        })
    }

    pub fn kernel(&self, name: &str) -> sys::ze_kernel_handle_t {
        let kernel = self.runtime.kernel(self.module, name).unwrap();
        must!(self.runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
        kernel
    }

    pub fn set<T>(&self, kernel: sys::ze_kernel_handle_t, index: u32, value: T) {
        assert_eq!(self.runtime.set(kernel, index, value), OK);
    }

    /// Appends a launch of so many groups of one work-item.
    pub fn launch(
        &self,
        list: sys::ze_command_list_handle_t,
        kernel: sys::ze_kernel_handle_t,
        size: [usize; 3],
    ) -> ze_result_t {
        let [x, y, z] = size.map(|extent| extent as u32);
        let groups = sys::ze_group_count_t {
            groupCountX: x,
            groupCountY: y,
            groupCountZ: z,
        };
        call!(
            self.runtime,
            zeCommandListAppendLaunchKernel(
                list,
                kernel,
                &raw const groups,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        )
    }
}

pub struct Image<'a> {
    pub setup: &'a Setup,
    pub handle: sys::ze_image_handle_t,
    /// Pixels in a row, rows, planes.
    pub size: [usize; 3],
}

impl Drop for Image<'_> {
    fn drop(&mut self) {
        must!(self.setup.runtime, zeImageDestroy(self.handle));
    }
}

impl Image<'_> {
    pub fn pixels(&self) -> usize {
        self.size.iter().product()
    }

    /// Appends a copy of `bytes` into the image, or a region of it.
    pub fn append_write(
        &self,
        list: sys::ze_command_list_handle_t,
        bytes: &[u8],
        region: Option<&sys::ze_image_region_t>,
    ) -> ze_result_t {
        call!(
            self.setup.runtime,
            zeCommandListAppendImageCopyFromMemory(
                list,
                self.handle,
                bytes.as_ptr().cast(),
                region.map_or(ptr::null(), ptr::from_ref),
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        )
    }

    /// Appends a copy of the image, or a region of it, into `bytes`.
    pub fn append_read(
        &self,
        list: sys::ze_command_list_handle_t,
        bytes: &mut [u8],
        region: Option<&sys::ze_image_region_t>,
    ) -> ze_result_t {
        call!(
            self.setup.runtime,
            zeCommandListAppendImageCopyToMemory(
                list,
                bytes.as_mut_ptr().cast::<c_void>(),
                self.handle,
                region.map_or(ptr::null(), ptr::from_ref),
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        )
    }

    /// Sets a `read_` or `write_` kernel up for the image and memory, and appends its launch.
    pub fn append_kernel(&self, list: sys::ze_command_list_handle_t, name: &str, memory: &[u32]) {
        let setup = self.setup;
        let kernel = setup.kernel(name);
        setup.set(kernel, 0, self.handle);
        setup.set(kernel, 1, memory.as_ptr());
        setup.set(kernel, 2, self.size[0] as u32);
        setup.set(kernel, 3, self.size[1] as u32);
        assert_eq!(setup.launch(list, kernel, self.size), OK);
        must!(setup.runtime, zeKernelDestroy(kernel));
    }
}

/// A descriptor of a small image.
pub fn description(
    image_type: sys::ze_image_type_t,
    layout: sys::ze_image_format_layout_t,
    channel: sys::ze_image_format_type_t,
    swizzles: [sys::ze_image_format_swizzle_t; 4],
) -> sys::ze_image_desc_t {
    let [x, y, z, w] = swizzles;
    let pixel = LAYOUTS.iter().find(|row| row.0 == layout);
    let pixel = pixel.map_or(4, |(_, components, bytes)| components * bytes);
    let width = if image_type == sys::ZE_IMAGE_TYPE_BUFFER {
        5 * pixel as u64
    } else {
        5
    };
    sys::ze_image_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_IMAGE_DESC,
        flags: sys::ZE_IMAGE_FLAG_KERNEL_WRITE.0,
        type_: image_type,
        format: sys::ze_image_format_t {
            layout,
            type_: channel,
            x,
            y,
            z,
            w,
        },
        width,
        height: 4,
        depth: 3,
        arraylevels: 2,
        ..Default::default()
    }
}

/// Pixels in a row, rows and planes of the image that a descriptor describes.
pub fn size(desc: &sys::ze_image_desc_t) -> [usize; 3] {
    let [height, depth, layers] =
        [desc.height, desc.depth, desc.arraylevels].map(|extent| extent as usize);
    let width = desc.width as usize;
    match desc.type_ {
        sys::ZE_IMAGE_TYPE_1D => [width, 1, 1],
        sys::ZE_IMAGE_TYPE_1DARRAY => [width, layers, 1],
        sys::ZE_IMAGE_TYPE_2D => [width, height, 1],
        sys::ZE_IMAGE_TYPE_2DARRAY => [width, height, layers],
        sys::ZE_IMAGE_TYPE_3D => [width, height, depth],
        _ => {
            let row = LAYOUTS.iter().find(|row| row.0 == desc.format.layout);
            let (_, components, bytes) = *row.unwrap();
            [width / (components * bytes), 1, 1]
        }
    }
}

/// The plain format of four unsigned bytes.
pub fn plain(image_type: sys::ze_image_type_t) -> sys::ze_image_desc_t {
    let (layout, channel) = (
        sys::ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8,
        sys::ZE_IMAGE_FORMAT_TYPE_UINT,
    );
    description(image_type, layout, channel, [R, G, B, A])
}

/// Bytes that differ from their neighbours.
pub fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length)
        .map(|index| ((index * 37 + seed * 11) % 251) as u8)
        .collect()
}
