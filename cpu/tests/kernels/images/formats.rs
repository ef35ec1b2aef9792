//! Formats and types: the bytes of pixels, and the values that kernels read and write.

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use level_zero_sys::extensions;

use super::super::runtime::{call, must};
use super::programs::KINDS;
use super::support::{
    A, ANY, B, CHANNELS, G, Image, LAYOUTS, ONE, R, Setup, TYPES, ZERO, description, pattern,
};

/// Channels that programs ask for; those with X are supported as anything else is.
const SWIZZLES: [[sys::ze_image_format_swizzle_t; 4]; 14] = [
    [R, G, B, A],
    [B, G, R, A],
    [G, B, A, R],
    [A, R, G, B],
    [A, B, G, R],
    [R, ZERO, ZERO, ONE],
    [R, G, ZERO, ONE],
    [R, ZERO, ZERO, G],
    [ZERO, ZERO, ZERO, R],
    [R, R, R, ONE],
    [R, R, R, R],
    [R, G, B, ONE],
    [R, G, B, ANY],
    [ANY, ANY, ANY, R],
];

fn half(bits: u16) -> f32 {
    let exponent = i32::from(bits >> 10 & 0x1f) - 25;
    let fraction = f32::from(bits & 0x3ff | 0x400);
    let value = fraction * 2_f32.powi(exponent);
    if bits & 0x8000 == 0 { value } else { -value }
}

/// The bits that a kernel reads for a component.
fn decode(channel: sys::ze_image_format_type_t, bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u32::from_le_bytes(word);
    let unused = 32 - 8 * bytes.len() as u32;
    let signed = (unsigned << unused) as i32 >> unused;
    let most = f64::from(u32::MAX >> unused);
    match channel {
        sys::ZE_IMAGE_FORMAT_TYPE_UINT => unsigned,
        sys::ZE_IMAGE_FORMAT_TYPE_SINT => signed as u32,
        sys::ZE_IMAGE_FORMAT_TYPE_UNORM => ((f64::from(unsigned) / most) as f32).to_bits(),
        sys::ZE_IMAGE_FORMAT_TYPE_SNORM => {
            ((f64::from(signed) / ((most - 1.0) / 2.0)).max(-1.0) as f32).to_bits()
        }
        _ if bytes.len() == 2 => half(unsigned as u16).to_bits(),
        _ => unsigned,
    }
}

fn class(channel: sys::ze_image_format_type_t) -> &'static str {
    match channel {
        sys::ZE_IMAGE_FORMAT_TYPE_UINT => "u",
        sys::ZE_IMAGE_FORMAT_TYPE_SINT => "i",
        _ => "f",
    }
}

/// Components that every type has exactly one encoding for: floats from 2^-32 to 2, and no least negative number.
fn components(channel: sys::ze_image_format_type_t, bytes: usize, length: usize) -> Vec<u8> {
    let mut all = pattern(length, bytes);
    for component in all.chunks_mut(bytes) {
        let last = component.last_mut().unwrap();
        if channel == sys::ZE_IMAGE_FORMAT_TYPE_FLOAT {
            *last = *last & 0x9f | 0x20;
        } else if *last == 0x80 {
            *last = 1;
        }
    }
    all
}

/// What kernels read from `bytes`, four channels for each pixel.
fn channels(desc: &sys::ze_image_desc_t, count: usize, size: usize, bytes: &[u8]) -> Vec<u32> {
    let channel = desc.format.type_;
    let one = if class(channel) == "f" {
        1_f32.to_bits()
    } else {
        1
    };
    let mut all = Vec::new();
    for pixel in bytes.chunks(count * size) {
        let component = |index: usize, missing| {
            let part = pixel.chunks(size).nth(index);
            part.map_or(missing, |part| decode(channel, part))
        };
        for swizzle in [desc.format.x, desc.format.y, desc.format.z, desc.format.w] {
            all.push(match swizzle {
                R => component(0, 0),
                G => component(1, 0),
                B => component(2, 0),
                A => component(3, one),
                ONE => one,
                _ => 0,
            });
        }
    }
    all
}

fn same(class: &str, left: u32, right: u32) -> bool {
    left == right || class == "f" && (f32::from_bits(left) - f32::from_bits(right)).abs() < 1e-6
}

/// Bytes to the image, channels from it by a kernel, and by another kernel to a second image, whose bytes are the same.
fn round_trip(first: &Image, second: &Image, desc: &sys::ze_image_desc_t, kind: &str) {
    let setup = first.setup;
    let row = LAYOUTS.iter().find(|row| row.0 == desc.format.layout);
    let (_, count, size) = *row.unwrap();
    let bytes = components(desc.format.type_, size, first.pixels() * count * size);
    let read = setup.runtime.shared(&vec![7; first.pixels() * 4]);
    let mut back = vec![0; bytes.len()];
    let class = class(desc.format.type_);
    let list = setup.runtime.immediate(true);
    assert_eq!(first.append_write(list, &bytes, None), OK);
    first.append_kernel(list, &format!("read_{kind}_{class}"), read);
    second.append_kernel(list, &format!("write_{kind}_{class}"), read);
    assert_eq!(second.append_read(list, &mut back, None), OK);
    assert_eq!(setup.runtime.synchronize(list), OK);
    let expected = channels(desc, count, size, &bytes);
    let swizzles = [desc.format.x, desc.format.y, desc.format.z, desc.format.w];
    for (index, (found, expected)) in read.iter().zip(expected).enumerate() {
        let is_any = swizzles[index % 4] == ANY;
        assert!(
            is_any || same(class, *found, expected),
            "{kind} {:?}: channel {index} is {found:#x} instead of {expected:#x}",
            desc.format,
        );
    }
    assert_eq!(back, bytes, "{kind} {:?}", desc.format);
}

#[test]
fn kernels_read_and_write_the_channels_of_every_format() {
    let Some(setup) = Setup::get() else { return };
    let mut supported = 0;
    for (layout, ..) in LAYOUTS {
        for channel in CHANNELS {
            for swizzles in SWIZZLES {
                let desc = description(sys::ZE_IMAGE_TYPE_1D, layout, channel, swizzles);
                match setup.image(&desc) {
                    Ok(first) => {
                        supported += 1;
                        let second = setup.image(&desc).unwrap();
                        round_trip(&first, &second, &desc, "1d");
                    }
                    Err(code) => {
                        assert_eq!(code, sys::ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT);
                        let required = swizzles == [R, G, B, A] && is_required(layout, channel);
                        assert!(!required, "{:?}", desc.format);
                    }
                }
            }
        }
    }
    // Every order of OpenCL's is among them.
    assert!(supported > 100, "{supported}");
}

/// What the specification requires, less normalized numbers of 32 bits, which OpenCL does not have.
fn is_required(
    layout: sys::ze_image_format_layout_t,
    channel: sys::ze_image_format_type_t,
) -> bool {
    let row = LAYOUTS.iter().find(|row| row.0 == layout);
    match channel {
        sys::ZE_IMAGE_FORMAT_TYPE_UINT | sys::ZE_IMAGE_FORMAT_TYPE_SINT => true,
        sys::ZE_IMAGE_FORMAT_TYPE_FLOAT => row.unwrap().2 > 1,
        _ => row.unwrap().2 < 4,
    }
}

#[test]
fn kernels_find_the_pixels_of_every_type() {
    let Some(setup) = Setup::get() else { return };
    let formats = [
        (
            sys::ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8,
            sys::ZE_IMAGE_FORMAT_TYPE_UINT,
        ),
        (
            sys::ZE_IMAGE_FORMAT_LAYOUT_16_16,
            sys::ZE_IMAGE_FORMAT_TYPE_SINT,
        ),
        (
            sys::ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32,
            sys::ZE_IMAGE_FORMAT_TYPE_FLOAT,
        ),
        (
            sys::ZE_IMAGE_FORMAT_LAYOUT_8,
            sys::ZE_IMAGE_FORMAT_TYPE_UNORM,
        ),
    ];
    for (image_type, (kind, ..)) in TYPES.into_iter().zip(KINDS) {
        for (layout, channel) in formats {
            let desc = description(image_type, layout, channel, [R, G, B, A]);
            let (first, second) = (setup.image(&desc).unwrap(), setup.image(&desc).unwrap());
            round_trip(&first, &second, &desc, kind);
        }
    }
}

#[test]
fn unsupported_formats_are_refused_and_reported() {
    let Some(setup) = Setup::get() else { return };
    let packed = [
        sys::ZE_IMAGE_FORMAT_LAYOUT_10_10_10_2,
        sys::ZE_IMAGE_FORMAT_LAYOUT_11_11_10,
        sys::ZE_IMAGE_FORMAT_LAYOUT_5_6_5,
        sys::ZE_IMAGE_FORMAT_LAYOUT_5_5_5_1,
        sys::ZE_IMAGE_FORMAT_LAYOUT_4_4_4_4,
        sys::ZE_IMAGE_FORMAT_LAYOUT_NV12,
        sys::ZE_IMAGE_FORMAT_LAYOUT_BRGP,
    ];
    for image_type in TYPES {
        for layout in packed {
            let channel = sys::ZE_IMAGE_FORMAT_TYPE_UNORM;
            let desc = description(image_type, layout, channel, [R, G, B, A]);
            let code = setup.image(&desc).err();
            assert_eq!(code, Some(sys::ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT));
            assert_eq!(filters(setup, &desc), (0, 0));
        }
    }
    let point = sys::ZE_IMAGE_SAMPLER_FILTER_FLAG_POINT.0;
    let linear = sys::ZE_IMAGE_SAMPLER_FILTER_FLAG_LINEAR.0;
    for channel in CHANNELS {
        let layout = sys::ZE_IMAGE_FORMAT_LAYOUT_16_16;
        let desc = description(sys::ZE_IMAGE_TYPE_2D, layout, channel, [R, G, B, A]);
        let expected = if class(channel) == "f" {
            point | linear
        } else {
            point
        };
        assert_eq!(filters(setup, &desc), (expected, 1));
    }
}

/// The filters that `zeImageGetProperties` reports, and whether the format is supported.
fn filters(setup: &Setup, desc: &sys::ze_image_desc_t) -> (u32, u8) {
    let mut support = extensions::ze_image_format_support_ext_properties_t {
        stype: extensions::ZE_STRUCTURE_TYPE_IMAGE_FORMAT_SUPPORT_EXT_PROPERTIES,
        pNext: std::ptr::null_mut(),
        supported: 9,
    };
    let mut properties = sys::ze_image_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_IMAGE_PROPERTIES,
        pNext: (&raw mut support).cast(),
        samplerFilterFlags: 99,
    };
    must!(
        setup.runtime,
        zeImageGetProperties(setup.runtime.device, desc, &raw mut properties)
    );
    (properties.samplerFilterFlags, support.supported)
}
