//! Images: views of memory of this process, which kernels read and write pixel by pixel.

use std::ffi::c_void;
use std::ptr;

use opencl_sys as cl;
use opencl_sys::{cl_channel_order, cl_channel_type, cl_mem, cl_mem_object_type};

use super::device::checked;
use super::quiesce::Call;
use super::{Error, Runtime};

/// The dimensions that an image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// A row.
    Line,
    /// Rows, each an image of its own.
    Lines,
    /// Rows that make up one image.
    Plane,
    /// Planes, each an image of its own.
    Planes,
    /// Planes that make up one image.
    Volume,
    /// A row in a buffer, which may be longer than others, and is read without samplers.
    Buffer,
}

impl ImageKind {
    fn object_type(self) -> cl_mem_object_type {
        match self {
            Self::Line => cl::CL_MEM_OBJECT_IMAGE1D,
            Self::Lines => cl::CL_MEM_OBJECT_IMAGE1D_ARRAY,
            Self::Plane => cl::CL_MEM_OBJECT_IMAGE2D,
            Self::Planes => cl::CL_MEM_OBJECT_IMAGE2D_ARRAY,
            Self::Volume => cl::CL_MEM_OBJECT_IMAGE3D,
            Self::Buffer => cl::CL_MEM_OBJECT_IMAGE1D_BUFFER,
        }
    }
}

/// The components of a pixel, in the order in which they are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageFormat {
    /// `CL_RGBA` and so on.
    pub order: cl_channel_order,
    /// `CL_UNORM_INT8` and so on.
    pub channel: cl_channel_type,
}

/// Where the pixels of an image are.
#[derive(Clone, Copy, Debug)]
pub struct ImageLayout {
    /// Its dimensions.
    pub kind: ImageKind,
    /// Pixels in a row, rows in a plane (of lines: lines), and planes.
    pub size: [usize; 3],
    /// Bytes in a pixel.
    pub pixel: usize,
    /// Bytes from row to row.
    pub row_pitch: usize,
    /// Bytes from plane to plane.
    pub slice_pitch: usize,
}

impl ImageLayout {
    fn description(&self, buffer: cl_mem) -> cl::cl_image_desc {
        let [width, height, depth] = self.size;
        let (rows, planes) = (self.row_pitch, self.slice_pitch);
        // The height, the depth, the length of the array, the pitches; 0 for those that the kind does not have.
        let (height, depth, array, row_pitch, slice_pitch) = match self.kind {
            ImageKind::Line | ImageKind::Buffer => (0, 0, 0, 0, 0),
            ImageKind::Lines => (0, 0, height, rows, rows),
            ImageKind::Plane => (height, 0, 0, rows, 0),
            ImageKind::Planes => (height, 0, depth, rows, planes),
            ImageKind::Volume => (height, depth, 0, rows, planes),
        };
        cl::cl_image_desc {
            image_type: self.kind.object_type(),
            image_width: width,
            image_height: height,
            image_depth: depth,
            image_array_size: array,
            image_row_pitch: row_pitch,
            image_slice_pitch: slice_pitch,
            num_mip_levels: 0,
            num_samples: 0,
            buffer,
        }
    }

    /// Bytes from the first pixel to the end of the last one.
    fn length(&self) -> usize {
        let [width, height, depth] = self.size;
        (depth - 1) * self.slice_pitch + (height - 1) * self.row_pitch + width * self.pixel
    }
}

/// An image whose pixels are in memory of this process.
pub struct Image {
    runtime: &'static Runtime,
    raw: cl_mem,
    /// The buffer of an image in a buffer, else null.
    buffer: cl_mem,
}

// SAFETY: an image is used as the value of an argument only, which the kernel's lock guards.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Image {
    /// An image of the pixels at `address`, for reading and writing.
    ///
    /// # Errors
    /// When the runtime refuses the format or the layout.
    ///
    /// # Safety
    /// While a launch uses the image, the memory is valid.
    pub unsafe fn new(
        runtime: &'static Runtime,
        format: ImageFormat,
        layout: &ImageLayout,
        address: usize,
    ) -> Result<Self, Error> {
        let _call = Call::begin()?;
        let mut image = Self {
            runtime,
            raw: ptr::null_mut(),
            buffer: ptr::null_mut(),
        };
        let (mut flags, mut memory) = (cl::CL_MEM_USE_HOST_PTR, address as *mut c_void);
        let mut code = 0;
        if layout.kind == ImageKind::Buffer {
            // SAFETY: the caller vouches for the memory; the status is written to our place.
            let buffer = unsafe {
                let create = runtime.api.clCreateBuffer;
                let flags = flags | cl::CL_MEM_READ_WRITE;
                create(
                    runtime.context,
                    flags,
                    layout.length(),
                    memory,
                    &raw mut code,
                )
            };
            image.buffer = checked("clCreateBuffer", buffer, code)?;
            (flags, memory) = (0, ptr::null_mut());
        }
        let format = cl::cl_image_format {
            image_channel_order: format.order,
            image_channel_data_type: format.channel,
        };
        let desc = layout.description(image.buffer);
        // SAFETY: format and description live during the call, and the caller vouches for the memory.
        let raw = unsafe {
            (runtime.api.clCreateImage)(
                runtime.context,
                flags | cl::CL_MEM_READ_WRITE,
                &raw const format,
                &raw const desc,
                memory,
                &raw mut code,
            )
        };
        image.raw = checked("clCreateImage", raw, code)?;
        Ok(image)
    }

    /// The bytes of an argument that is this image.
    pub(super) fn handle(&self) -> [u8; size_of::<usize>()] {
        (self.raw as usize).to_ne_bytes()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let Ok(_call) = Call::begin() else { return };
        let release = self.runtime.api.clReleaseMemObject;
        for memory in [self.raw, self.buffer] {
            if !memory.is_null() {
                // SAFETY: created here, released once; a launch in flight holds it by OpenCL's own count.
                unsafe { release(memory) };
            }
        }
    }
}

impl Runtime {
    /// Whether kernels can read and write images of this kind and format.
    pub fn supports_image(&self, kind: ImageKind, format: ImageFormat) -> bool {
        let Ok(_call) = Call::begin() else {
            return false;
        };
        let list = |room: u32, formats: *mut cl::cl_image_format, count: *mut u32| {
            // SAFETY: the formats are null or a buffer of `room`, and the count is null or a place.
            unsafe {
                (self.api.clGetSupportedImageFormats)(
                    self.context,
                    cl::CL_MEM_READ_WRITE,
                    kind.object_type(),
                    room,
                    formats,
                    count,
                )
            }
        };
        let mut count = 0;
        if list(0, ptr::null_mut(), &raw mut count) != cl::CL_SUCCESS {
            return false;
        }
        let empty = cl::cl_image_format {
            image_channel_order: 0,
            image_channel_data_type: 0,
        };
        let mut formats = vec![empty; count as usize];
        list(count, formats.as_mut_ptr(), ptr::null_mut()) == cl::CL_SUCCESS
            && formats.iter().any(|found| {
                found.image_channel_order == format.order
                    && found.image_channel_data_type == format.channel
            })
    }
}
