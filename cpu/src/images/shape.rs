//! The dimensions of images, and boxes in them.

use level_zero_sys as sys;

use crate::abi::result::{ZeResult, described, ensure};
use crate::abi::strictness::is_strict;
use crate::opencl::{ImageKind, ImageLayout, ImageLimits};
use crate::operation::Cuboid;

/// The kind of an image.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ENUMERATION` for types that the specification does not have.
pub fn kind(image_type: sys::ze_image_type_t) -> ZeResult<ImageKind> {
    Ok(match image_type {
        sys::ZE_IMAGE_TYPE_1D => ImageKind::Line,
        sys::ZE_IMAGE_TYPE_1DARRAY => ImageKind::Lines,
        sys::ZE_IMAGE_TYPE_2D => ImageKind::Plane,
        sys::ZE_IMAGE_TYPE_2DARRAY => ImageKind::Planes,
        sys::ZE_IMAGE_TYPE_3D => ImageKind::Volume,
        sys::ZE_IMAGE_TYPE_BUFFER => ImageKind::Buffer,
        _ => return Err(sys::ZE_RESULT_ERROR_INVALID_ENUMERATION),
    })
}

/// The layout of an image without gaps, whose pixels have `pixel` bytes. Dimensions that its type does not have are
/// ignored. The width of an image in a buffer is in bytes.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ENUMERATION` for an unknown type, `ZE_RESULT_ERROR_UNSUPPORTED_SIZE` for a dimension that
/// is 0 or above the device's limit.
pub fn layout(
    desc: &sys::ze_image_desc_t,
    pixel: usize,
    limits: &ImageLimits,
) -> ZeResult<ImageLayout> {
    let kind = kind(desc.type_)?;
    let width = usize::try_from(desc.width).unwrap_or(usize::MAX);
    let [height, depth, layers] =
        [desc.height, desc.depth, desc.arraylevels].map(|extent| extent as usize);
    let (size, most) = match kind {
        ImageKind::Line => ([width, 1, 1], [limits.line, 1, 1]),
        ImageKind::Lines => ([width, layers, 1], [limits.line, limits.layers, 1]),
        ImageKind::Plane => ([width, height, 1], [limits.plane, limits.plane, 1]),
        ImageKind::Planes => (
            [width, height, layers],
            [limits.plane, limits.plane, limits.layers],
        ),
        ImageKind::Volume => ([width, height, depth], [limits.volume; 3]),
        ImageKind::Buffer => {
            ensure(
                width.is_multiple_of(pixel) && width <= limits.buffer,
                sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
            )?;
            ([width / pixel, 1, 1], [limits.buffer, 1, 1])
        }
    };
    if !size
        .iter()
        .zip(most)
        .all(|(size, most)| (1..=most).contains(size))
    {
        return Err(described(
            sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
            format_args!("images of {size:?} pixels are not supported, {most:?} are the most"),
        ));
    }
    let [width, height, _] = size;
    Ok(ImageLayout {
        kind,
        size,
        pixel,
        row_pitch: width * pixel,
        slice_pitch: width * pixel * height,
    })
}

/// How many dimensions an image of this kind has.
fn dimensions(kind: ImageKind) -> usize {
    match kind {
        ImageKind::Line | ImageKind::Buffer => 1,
        ImageKind::Lines | ImageKind::Plane => 2,
        ImageKind::Planes | ImageKind::Volume => 3,
    }
}

/// A box in an image, in bytes: all of it, or the region that the caller passed. A height or depth of 0 means 1.
/// Dimensions that the image does not have are ignored, unless arguments are checked strictly.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_SIZE` for a region that leaves the image.
pub fn cuboid(layout: &ImageLayout, region: Option<&sys::ze_image_region_t>) -> ZeResult<Cuboid> {
    let (mut origin, mut size) = match region {
        None => ([0; 3], layout.size),
        Some(region) => (
            [region.originX, region.originY, region.originZ].map(|offset| offset as usize),
            [region.width, region.height.max(1), region.depth.max(1)].map(|extent| extent as usize),
        ),
    };
    if !is_strict() {
        let dimensions = dimensions(layout.kind);
        origin[dimensions..].fill(0);
        size[dimensions..].fill(1);
    }
    let inside = origin
        .iter()
        .zip(size)
        .zip(layout.size)
        .all(|((origin, size), most)| origin + size <= most);
    ensure(inside, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
    let [x, y, z] = origin;
    let [width, height, depth] = size;
    Ok(Cuboid {
        origin: [x * layout.pixel, y, z],
        size: [width * layout.pixel, height, depth],
    })
}
