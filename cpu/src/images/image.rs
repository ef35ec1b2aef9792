//! The object behind an image's handle, and its properties.

use std::sync::Arc;

use level_zero_sys as sys;

use super::shape;
use crate::abi::entry::Out;
use crate::abi::result::ZeResult;
use crate::context::Context;
use crate::device::Device;
use crate::handle::object;
use crate::memory::{self, Pin, Span};
use crate::opencl::{self, ImageLayout};
use crate::operation::{Layout, Region};

object!(Image, sys::_ze_image_handle_t, Image);

/// An image or a view of one. Its pixels live until the image is destroyed and the commands in flight that use them are
/// complete.
pub struct Image {
    /// Its dimensions, and where its pixels are.
    pub layout: ImageLayout,
    /// The memory of its pixels.
    pub pixels: Span,
    /// The image that kernels get as their argument. A launch that uses it pins the pixels.
    pub opencl: opencl::Image,
    /// Whether the memory is freed with the image: it is not that of a program, or of the image that this is a view of.
    pub(super) owns_memory: bool,
}

impl Image {
    /// A box in it.
    ///
    /// # Errors
    /// Those of [`shape::cuboid`].
    pub(super) fn region(&self, region: Option<&sys::ze_image_region_t>) -> ZeResult<Region> {
        let layout = Layout {
            pitch: self.layout.row_pitch,
            slice_pitch: self.layout.slice_pitch,
            region: shape::cuboid(&self.layout, region)?,
        };
        Region::within(&self.pixels, &layout)
    }

    /// Frees the memory. Commands in flight keep it until they are complete.
    pub(super) fn release(&self) {
        if self.owns_memory {
            memory::remove(self.pixels.address(), |allocation| {
                self.pixels.is_in(allocation)
            });
        }
    }
}

/// `zeImageGetMemoryPropertiesExp`.
pub fn memory_properties(
    image: Arc<Image>,
    mut properties: Out<'_, sys::ze_image_memory_properties_exp_t>,
) -> ZeResult {
    properties.size = image.pixels.length() as u64;
    properties.rowPitch = image.layout.row_pitch as u64;
    properties.slicePitch = image.layout.slice_pitch as u64;
    Ok(())
}

/// `zeImageGetAllocPropertiesExt`: the id of the allocation, which a view shares with its image.
pub fn allocation_properties(
    _: Arc<Context>,
    image: Arc<Image>,
    mut properties: Out<'_, sys::ze_image_allocation_ext_properties_t>,
) -> ZeResult {
    let pin = image.pixels.pin()?;
    properties.id = pin.as_ref().and_then(Pin::allocation).map_or(0, |it| it.id);
    Ok(())
}

/// `zeContextMakeImageResident` and `zeContextEvictImage`: images are always resident.
pub fn check_residency(_: Arc<Context>, _: &'static Device, _: Arc<Image>) -> ZeResult {
    Ok(())
}
