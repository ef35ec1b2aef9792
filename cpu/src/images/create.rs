//! Creating, destroying and describing images.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::format::{Format, unsupported};
use super::image::Image;
use super::shape;
use crate::abi::arguments::{Link, check_flags};
use crate::abi::entry::{In, Out};
use crate::abi::result::{ZeResult, described, ensure};
use crate::context::Context;
use crate::device::Device;
use crate::handle::{hand_out, register, retire};
use crate::memory::{self, Span};
use crate::opencl::{self, ImageLayout, Runtime};

/// `ze_image_flags_t` up to 1.17. Kernels may write to every image, and all memory is cached.
const FLAGS: u32 = 0x3;

/// A descriptor that has been checked.
struct Request {
    runtime: &'static Runtime,
    format: Format,
    layout: ImageLayout,
}

impl Request {
    /// # Errors
    /// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE` without images, `ZE_RESULT_ERROR_INVALID_ENUMERATION` for values that the
    /// specification does not have, `ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT`, `ZE_RESULT_ERROR_UNSUPPORTED_SIZE`, and
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for mipmaps.
    fn new(desc: &sys::ze_image_desc_t) -> ZeResult<Self> {
        check_flags(desc.flags, FLAGS)?;
        let kind = shape::kind(desc.type_)?;
        ensure(desc.miplevels == 0, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let runtime = runtime()?;
        let format = Format::new(&desc.format)?;
        if !runtime.supports_image(kind, format.opencl) {
            return Err(unsupported());
        }
        let layout = shape::layout(desc, format.pixel, &runtime.properties.images)?;
        Ok(Self {
            runtime,
            format,
            layout,
        })
    }

    /// Bytes of all pixels.
    fn length(&self) -> usize {
        let [.., depth] = self.layout.size;
        self.layout.slice_pitch * depth
    }

    /// An image of pixels that exist.
    fn image(&self, pixels: Span, owns_memory: bool) -> ZeResult<Image> {
        let (runtime, format) = (self.runtime, self.format.opencl);
        // SAFETY: a launch pins the pixels, so that they are valid while it is in flight.
        let opencl = unsafe { opencl::Image::new(runtime, format, &self.layout, pixels.address()) };
        let refused = |error| described(sys::ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT, error);
        Ok(Image {
            layout: self.layout,
            pixels,
            opencl: opencl.map_err(refused)?,
            owns_memory,
        })
    }

    /// An image in new memory.
    fn allocate(&self, context: &Context, device: &Device) -> ZeResult<Image> {
        let size = self.length();
        ensure(
            size as u64 <= device.max_allocation_size(),
            sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
        )?;
        let request = memory::Request {
            size,
            alignment: 0,
            kind: sys::ZE_MEMORY_TYPE_DEVICE,
            context: context.id,
            // OpenCL may access it on the thread of the host.
            host_access: true,
            device: device.handle() as u64,
            share: device.share,
            exportable: false,
        };
        let address =
            memory::allocate(&request).ok_or(sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)?;
        let image = Span::new(address, size).and_then(|pixels| self.image(pixels, true));
        if image.is_err() {
            memory::remove(address, |_| true);
        }
        image
    }

    /// An image in memory of the program.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for memory that is no allocation, `ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT` when
    /// it is not aligned to pixels, and `ZE_RESULT_ERROR_INVALID_SIZE` when it is too short.
    fn adopt(&self, pointer: *mut c_void) -> ZeResult<Image> {
        let pixels = Span::new(pointer as usize, self.length())?;
        ensure(
            pixels.pin()?.is_some(),
            sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
        )?;
        self.check_alignment(&pixels)?;
        self.image(pixels, false)
    }

    /// # Errors
    /// `ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT` when the memory is not aligned to pixels, which OpenCL reads as vectors.
    fn check_alignment(&self, pixels: &Span) -> ZeResult {
        ensure(
            pixels.address().is_multiple_of(self.format.pixel),
            sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT,
        )
    }
}

/// The OpenCL runtime, if it has images.
///
/// # Errors
/// `ZE_RESULT_ERROR_UNSUPPORTED_FEATURE` otherwise, described.
pub(super) fn runtime() -> ZeResult<&'static Runtime> {
    let unsupported = sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    let runtime = Runtime::get().map_err(|error| described(unsupported, error))?;
    ensure(runtime.properties.images.plane > 0, unsupported)?;
    Ok(runtime)
}

/// The memory that a descriptor's chain gives the image, if it does. Any other structure changes what the image is, so
/// it is an error rather than ignored.
fn given_memory<'a>(chain: impl Iterator<Item = Link<'a>>) -> ZeResult<Option<*mut c_void>> {
    let mut given = None;
    for link in chain {
        let pitched = link.input::<extensions::ze_image_pitched_exp_desc_t>();
        let pitched = pitched.ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)?;
        given = Some(pitched.ptr);
    }
    Ok(given)
}

/// `zeImageGetProperties`. For a format that is not supported, it reports that no filter is.
pub fn properties(
    _: &'static Device,
    desc: In<'_, sys::ze_image_desc_t>,
    mut properties: Out<'_, sys::ze_image_properties_t>,
) -> ZeResult {
    let request = match Request::new(&desc) {
        Ok(request) => Some(request),
        Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT) => None,
        Err(error) => return Err(error),
    };
    let point = sys::ZE_IMAGE_SAMPLER_FILTER_FLAG_POINT.0;
    let linear = sys::ZE_IMAGE_SAMPLER_FILTER_FLAG_LINEAR.0;
    properties.samplerFilterFlags = match &request {
        None => 0,
        Some(request) if request.format.is_float => point | linear,
        Some(_) => point,
    };
    if let Some(it) = properties.extension::<extensions::ze_image_format_support_ext_properties_t>()
    {
        it.supported = sys::ze_bool_t::from(request.is_some());
    }
    Ok(())
}

/// `zeImageCreate`.
pub fn create(
    context: Arc<Context>,
    device: &'static Device,
    desc: In<'_, sys::ze_image_desc_t>,
    image: &mut sys::ze_image_handle_t,
) -> ZeResult {
    let given = given_memory(desc.chain())?;
    let request = Request::new(&desc)?;
    let made = match given {
        None => request.allocate(&context, device)?,
        Some(pointer) => request.adopt(pointer)?,
    };
    let made = Arc::new(made);
    *image = register(Arc::clone(&made)).inspect_err(|_| made.release())?;
    Ok(())
}

/// `zeImageViewCreateExt` and `...Exp`: another format or type for the same pixels. After the image is destroyed, the
/// view cannot be used.
pub fn create_view(
    _: Arc<Context>,
    _: &'static Device,
    desc: In<'_, sys::ze_image_desc_t>,
    image: Arc<Image>,
    place: &mut sys::ze_image_handle_t,
) -> ZeResult {
    ensure(
        desc.pNext.is_null(),
        sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION,
    )?;
    let request = Request::new(&desc)?;
    ensure(
        request.length() <= image.pixels.length(),
        sys::ZE_RESULT_ERROR_INVALID_SIZE,
    )?;
    request.check_alignment(&image.pixels)?;
    // Keeps the pixels alive while OpenCL looks at them.
    let _pin = image.pixels.pin()?;
    let pixels = image.pixels.part(0, request.length());
    hand_out(request.image(pixels, false)?, place)
}

/// `zeImageDestroy`. Commands in flight keep the memory until they are complete.
pub fn destroy(image: sys::ze_image_handle_t) -> ZeResult {
    retire::<Image>(image).map(|image| image.release())
}
