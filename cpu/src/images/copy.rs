//! Appending copies between images, and between images and memory.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;

use super::image::Image;
use super::shape;
use crate::abi::result::{ZeResult, ensure};
use crate::command_list::{CommandList, Events};
use crate::engine::Order;
use crate::opencl::ImageKind;
use crate::operation::{Cuboid, Layout, Region, RegionCopy};

/// The two sides of a copy between an image and memory: the box in the image, and one of its size at `base`, with so many bytes from
/// row to row, and from slice to slice, or image to image of an array; 0 means no gap.
fn sides(
    image: &Image,
    region: Option<&sys::ze_image_region_t>,
    base: *const c_void,
    row: u32,
    slice: u32,
) -> ZeResult<(Region, Region)> {
    let Cuboid { size, .. } = shape::cuboid(&image.layout, region)?;
    let row = match image.layout.kind {
        // The images of a one-dimensional array are rows here.
        ImageKind::Lines if slice != 0 => slice,
        _ => row,
    };
    let layout = Layout {
        pitch: row as usize,
        slice_pitch: match image.layout.kind {
            ImageKind::Planes | ImageKind::Volume => slice as usize,
            _ => 0,
        },
        region: Cuboid {
            origin: [0; 3],
            size,
        },
    };
    Ok((image.region(region)?, Region::new(base as usize, &layout)?))
}

/// `zeCommandListAppendImageCopy`.
pub fn append_copy(
    list: Arc<CommandList>,
    to: Arc<Image>,
    from: Arc<Image>,
    events: Events,
) -> ZeResult {
    append_copy_region(list, to, from, None, None, events)
}

/// `zeCommandListAppendImageCopyRegion`. The formats must have pixels of the same size, which are copied as they are.
pub fn append_copy_region(
    list: Arc<CommandList>,
    to: Arc<Image>,
    from: Arc<Image>,
    to_region: Option<&sys::ze_image_region_t>,
    from_region: Option<&sys::ze_image_region_t>,
    events: Events,
) -> ZeResult {
    ensure(
        to.layout.pixel == from.layout.pixel,
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    let copy = RegionCopy::new(to.region(to_region)?, from.region(from_region)?)?;
    events.append(&list, copy, Order::Unordered)
}

/// `zeCommandListAppendImageCopyToMemory`.
pub fn append_copy_to_memory(
    list: Arc<CommandList>,
    to: *mut c_void,
    from: Arc<Image>,
    region: Option<&sys::ze_image_region_t>,
    events: Events,
) -> ZeResult {
    append_pitched_copy_to_memory(list, to, from, region, 0, 0, events)
}

/// `zeCommandListAppendImageCopyToMemoryExt`.
pub fn append_pitched_copy_to_memory(
    list: Arc<CommandList>,
    to: *mut c_void,
    from: Arc<Image>,
    region: Option<&sys::ze_image_region_t>,
    row: u32,
    slice: u32,
    events: Events,
) -> ZeResult {
    let (from, to) = sides(&from, region, to, row, slice)?;
    events.append(&list, RegionCopy::new(to, from)?, Order::Unordered)
}

/// `zeCommandListAppendImageCopyFromMemory`.
pub fn append_copy_from_memory(
    list: Arc<CommandList>,
    to: Arc<Image>,
    from: *const c_void,
    region: Option<&sys::ze_image_region_t>,
    events: Events,
) -> ZeResult {
    append_pitched_copy_from_memory(list, to, from, region, 0, 0, events)
}

/// `zeCommandListAppendImageCopyFromMemoryExt`.
pub fn append_pitched_copy_from_memory(
    list: Arc<CommandList>,
    to: Arc<Image>,
    from: *const c_void,
    region: Option<&sys::ze_image_region_t>,
    row: u32,
    slice: u32,
    events: Events,
) -> ZeResult {
    let (to, from) = sides(&to, region, from, row, slice)?;
    events.append(&list, RegionCopy::new(to, from)?, Order::Unordered)
}
