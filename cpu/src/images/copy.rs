//! Appending copies between images, and between images and memory.

use std::ffi::c_void;

use level_zero_sys as sys;

use super::image::Image;
use super::shape;
use crate::abi::arguments::input;
use crate::abi::result::ZeResult;
use crate::abi::result::ensure;
use crate::command_list::{CommandList, Events};
use crate::engine::Order;
use crate::handle::resolve;
use crate::opencl::ImageKind;
use crate::operation::{Cuboid, Layout, Region, RegionCopy};

/// Bytes from row to row, and from slice to slice, in memory beside an image; 0 means no gap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pitches {
    /// From row to row.
    pub row: u32,
    /// From slice to slice, or from image to image of an array.
    pub slice: u32,
}

/// The region that a pointer refers to; null is the whole image.
///
/// # Safety
/// `region` must be null, misaligned or valid.
unsafe fn optional<'a>(
    region: *const sys::ze_image_region_t,
) -> ZeResult<Option<&'a sys::ze_image_region_t>> {
    if region.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the pointer.
    unsafe { input(region) }.map(Some)
}

/// The two sides of a copy between an image and memory: the box in the image, and one of its size at `base`.
///
/// # Safety
/// As for [`optional`].
unsafe fn sides(
    image: &Image,
    region: *const sys::ze_image_region_t,
    base: *const c_void,
    pitches: Pitches,
) -> ZeResult<(Region, Region)> {
    // SAFETY: the caller vouches for the pointer.
    let region = unsafe { optional(region) }?;
    let Cuboid { size, .. } = shape::cuboid(&image.layout, region)?;
    let row = match image.kind() {
        // The images of a one-dimensional array are rows here.
        ImageKind::Lines if pitches.slice != 0 => pitches.slice,
        _ => pitches.row,
    };
    let layout = Layout {
        pitch: row as usize,
        slice_pitch: match image.kind() {
            ImageKind::Planes | ImageKind::Volume => pitches.slice as usize,
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
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn append_copy(
    list: sys::ze_command_list_handle_t,
    to: sys::ze_image_handle_t,
    from: sys::ze_image_handle_t,
    events: Events,
) -> ZeResult {
    // SAFETY: the caller vouches for the events.
    unsafe { append_copy_region(list, to, from, std::ptr::null(), std::ptr::null(), events) }
}

/// `zeCommandListAppendImageCopyRegion`. The formats must have pixels of the same size, which are copied as they are.
///
/// # Safety
/// As for [`append_copy`].
pub unsafe fn append_copy_region(
    list: sys::ze_command_list_handle_t,
    to: sys::ze_image_handle_t,
    from: sys::ze_image_handle_t,
    to_region: *const sys::ze_image_region_t,
    from_region: *const sys::ze_image_region_t,
    events: Events,
) -> ZeResult {
    let list = resolve::<CommandList>(list)?;
    let (to, from) = (resolve::<Image>(to)?, resolve::<Image>(from)?);
    ensure(
        to.layout.pixel == from.layout.pixel,
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    // SAFETY: the caller vouches for the pointers and the events.
    unsafe {
        let to = to.region(optional(to_region)?)?;
        let from = from.region(optional(from_region)?)?;
        events.append(&list, RegionCopy::new(to, from)?, Order::Unordered)
    }
}

/// `zeCommandListAppendImageCopyToMemory` and, with pitches, `...Ext`.
///
/// # Safety
/// As for [`append_copy`].
pub unsafe fn append_copy_to_memory(
    list: sys::ze_command_list_handle_t,
    to: *mut c_void,
    from: sys::ze_image_handle_t,
    region: *const sys::ze_image_region_t,
    pitches: Pitches,
    events: Events,
) -> ZeResult {
    let list = resolve::<CommandList>(list)?;
    let from = resolve::<Image>(from)?;
    // SAFETY: the caller vouches for the pointers and the events.
    unsafe {
        let (from, to) = sides(&from, region, to, pitches)?;
        events.append(&list, RegionCopy::new(to, from)?, Order::Unordered)
    }
}

/// `zeCommandListAppendImageCopyFromMemory` and, with pitches, `...Ext`.
///
/// # Safety
/// As for [`append_copy`].
pub unsafe fn append_copy_from_memory(
    list: sys::ze_command_list_handle_t,
    to: sys::ze_image_handle_t,
    from: *const c_void,
    region: *const sys::ze_image_region_t,
    pitches: Pitches,
    events: Events,
) -> ZeResult {
    let list = resolve::<CommandList>(list)?;
    let to = resolve::<Image>(to)?;
    // SAFETY: the caller vouches for the pointers and the events.
    unsafe {
        let (to, from) = sides(&to, region, from, pitches)?;
        events.append(&list, RegionCopy::new(to, from)?, Order::Unordered)
    }
}
