//! Images: views of memory of this process, which kernels read and write pixel by pixel.

use std::ffi::c_void;
use std::ptr;

use opencl_sys as cl;
use opencl_sys::{cl_image_format, cl_mem, cl_mem_object_type};

use super::device::listed;
use super::owned::Owned;
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
}

/// An image whose pixels are in memory of this process.
pub struct Image {
    image: Owned<cl_mem>,
    /// The buffer of an image in a buffer.
    _buffer: Option<Owned<cl_mem>>,
}

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
        format: cl_image_format,
        layout: &ImageLayout,
        address: usize,
    ) -> Result<Self, Error> {
        let _call = Call::begin()?;
        let release = runtime.api.clReleaseMemObject;
        let mut buffer = None;
        let (mut flags, mut memory) = (cl::CL_MEM_USE_HOST_PTR, address as *mut c_void);
        let mut code = 0;
        if layout.kind == ImageKind::Buffer {
            // SAFETY: the caller vouches for the memory; the status is written to our place.
            let raw = unsafe {
                let create = runtime.api.clCreateBuffer;
                let flags = flags | cl::CL_MEM_READ_WRITE;
                create(
                    runtime.context,
                    flags,
                    layout.row_pitch,
                    memory,
                    &raw mut code,
                )
            };
            // SAFETY: it was created just now.
            buffer = Some(unsafe { Owned::made("clCreateBuffer", raw, code, release) }?);
            (flags, memory) = (0, ptr::null_mut());
        }
        let in_buffer = buffer.as_ref().map_or(ptr::null_mut(), |it| it.raw);
        let desc = layout.description(in_buffer);
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
        Ok(Self {
            // SAFETY: it was created just now.
            image: unsafe { Owned::made("clCreateImage", raw, code, release) }?,
            _buffer: buffer,
        })
    }

    /// The bytes of an argument that is this image.
    pub(super) fn handle(&self) -> [u8; size_of::<usize>()] {
        (self.image.raw as usize).to_ne_bytes()
    }
}

impl Runtime {
    /// Whether kernels can read and write images of this kind and format.
    pub fn supports_image(&self, kind: ImageKind, format: cl_image_format) -> bool {
        let Ok(_call) = Call::begin() else {
            return false;
        };
        let formats = listed(format, |room, formats, count| {
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
        });
        formats.iter().any(|found| {
            found.image_channel_order == format.image_channel_order
                && found.image_channel_data_type == format.image_channel_data_type
        })
    }
}
