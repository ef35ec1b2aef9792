//! Formats: which of Level Zero's are OpenCL's, and how large their pixels are.
//!
//! A format of Level Zero has a layout (how many components, of how many bits), a type, and for each of the channels
//! red, green, blue and alpha that a kernel reads the component that it comes from. OpenCL has an order for some
//! choices of components. All others, packed and media layouts are unsupported.

use level_zero_sys as sys;
use level_zero_sys::{
    ZE_IMAGE_FORMAT_SWIZZLE_0 as ZERO, ZE_IMAGE_FORMAT_SWIZZLE_1 as ONE,
    ZE_IMAGE_FORMAT_SWIZZLE_A as A, ZE_IMAGE_FORMAT_SWIZZLE_B as B, ZE_IMAGE_FORMAT_SWIZZLE_G as G,
    ZE_IMAGE_FORMAT_SWIZZLE_R as R, ZE_IMAGE_FORMAT_SWIZZLE_X as ANY, ze_image_format_layout_t,
    ze_image_format_swizzle_t, ze_image_format_type_t,
};
use opencl_sys as cl;

use crate::abi::result::{ZeResult, described};

/// A format that OpenCL may support.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// OpenCL's name of it.
    pub opencl: cl::cl_image_format,
    /// Bytes of a pixel.
    pub pixel: usize,
    /// Whether kernels read numbers that can be filtered, other than integers.
    pub is_float: bool,
}

/// Layouts with components of one size: their number, and the bytes of one.
const LAYOUTS: [(ze_image_format_layout_t, usize, usize); 9] = [
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

/// Types, the bytes of a component, and OpenCL's name.
const CHANNELS: [(ze_image_format_type_t, usize, cl::cl_channel_type); 12] = [
    (sys::ZE_IMAGE_FORMAT_TYPE_UINT, 1, cl::CL_UNSIGNED_INT8),
    (sys::ZE_IMAGE_FORMAT_TYPE_UINT, 2, cl::CL_UNSIGNED_INT16),
    (sys::ZE_IMAGE_FORMAT_TYPE_UINT, 4, cl::CL_UNSIGNED_INT32),
    (sys::ZE_IMAGE_FORMAT_TYPE_SINT, 1, cl::CL_SIGNED_INT8),
    (sys::ZE_IMAGE_FORMAT_TYPE_SINT, 2, cl::CL_SIGNED_INT16),
    (sys::ZE_IMAGE_FORMAT_TYPE_SINT, 4, cl::CL_SIGNED_INT32),
    (sys::ZE_IMAGE_FORMAT_TYPE_UNORM, 1, cl::CL_UNORM_INT8),
    (sys::ZE_IMAGE_FORMAT_TYPE_UNORM, 2, cl::CL_UNORM_INT16),
    (sys::ZE_IMAGE_FORMAT_TYPE_SNORM, 1, cl::CL_SNORM_INT8),
    (sys::ZE_IMAGE_FORMAT_TYPE_SNORM, 2, cl::CL_SNORM_INT16),
    (sys::ZE_IMAGE_FORMAT_TYPE_FLOAT, 2, cl::CL_HALF_FLOAT),
    (sys::ZE_IMAGE_FORMAT_TYPE_FLOAT, 4, cl::CL_FLOAT),
];

/// The number of components, the component that each channel comes from, and OpenCL's order.
///
/// The components have the names R, G, B and A in the order in which they are in memory. `CL_ARGB` has alpha first in
/// memory, so its channel red comes from the second component, G.
const ORDERS: [(usize, [ze_image_format_swizzle_t; 4], cl::cl_channel_order); 9] = [
    (1, [R, ZERO, ZERO, ONE], cl::CL_R),
    (1, [ZERO, ZERO, ZERO, R], cl::CL_A),
    (1, [R, R, R, ONE], cl::CL_LUMINANCE),
    (1, [R, R, R, R], cl::CL_INTENSITY),
    (2, [R, G, ZERO, ONE], cl::CL_RG),
    (2, [R, ZERO, ZERO, G], cl::CL_RA),
    (4, [R, G, B, A], cl::CL_RGBA),
    (4, [B, G, R, A], cl::CL_BGRA),
    (4, [G, B, A, R], cl::CL_ARGB),
];

/// The last `ze_image_format_layout_t` of specification 1.17.
const LAST_LAYOUT: u32 = 45;
/// `ZE_IMAGE_FORMAT_SWIZZLE_D`, the last `ze_image_format_swizzle_t` of specification 1.17.
const LAST_SWIZZLE: u32 = 7;

impl Format {
    /// Finds OpenCL's format.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ENUMERATION` for values that the specification does not have,
    /// `ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT` for formats that OpenCL does not have.
    pub fn new(format: &sys::ze_image_format_t) -> ZeResult<Self> {
        let swizzles = [format.x, format.y, format.z, format.w];
        let known = format.layout.0 <= LAST_LAYOUT
            && format.type_.0 <= sys::ZE_IMAGE_FORMAT_TYPE_FLOAT.0
            && swizzles.iter().all(|swizzle| swizzle.0 <= LAST_SWIZZLE);
        if !known {
            return Err(sys::ZE_RESULT_ERROR_INVALID_ENUMERATION);
        }
        Self::find(format, swizzles).ok_or_else(unsupported)
    }

    fn find(
        format: &sys::ze_image_format_t,
        swizzles: [ze_image_format_swizzle_t; 4],
    ) -> Option<Self> {
        let (_, components, bytes) = *LAYOUTS.iter().find(|row| row.0 == format.layout)?;
        let (.., channel) = *CHANNELS
            .iter()
            .find(|row| row.0 == format.type_ && row.1 == bytes)?;
        let wanted = swizzles.map(|swizzle| existing(swizzle, components));
        let (.., order) = *ORDERS
            .iter()
            .find(|row| row.0 == components && provides(&row.1, &wanted))?;
        let integers = [
            sys::ZE_IMAGE_FORMAT_TYPE_UINT,
            sys::ZE_IMAGE_FORMAT_TYPE_SINT,
        ];
        Some(Self {
            opencl: cl::cl_image_format {
                image_channel_order: order,
                image_channel_data_type: channel,
            },
            pixel: components * bytes,
            is_float: !integers.contains(&format.type_),
        })
    }
}

/// The component that a channel reads: a missing colour is 0, and missing alpha 1.
fn existing(swizzle: ze_image_format_swizzle_t, components: usize) -> ze_image_format_swizzle_t {
    match swizzle {
        G if components < 2 => ZERO,
        B if components < 3 => ZERO,
        A if components < 4 => ONE,
        other => other,
    }
}

fn provides(channels: &[ze_image_format_swizzle_t], wanted: &[ze_image_format_swizzle_t]) -> bool {
    channels
        .iter()
        .zip(wanted)
        .all(|(channel, wanted)| *wanted == ANY || wanted == channel)
}

/// The error for a format that is not supported, described.
pub fn unsupported() -> sys::ze_result_t {
    let code = sys::ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT;
    described(code, "the OpenCL runtime has no such image format")
}
