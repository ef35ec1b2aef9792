//! Samplers, compared with the formulas of the OpenCL specification, section 8.2.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::{
    ZE_RESULT_SUCCESS as OK, ZE_SAMPLER_ADDRESS_MODE_CLAMP as CLAMP,
    ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER as BORDER, ZE_SAMPLER_ADDRESS_MODE_MIRROR as MIRROR,
    ZE_SAMPLER_ADDRESS_MODE_NONE as NONE, ZE_SAMPLER_ADDRESS_MODE_REPEAT as REPEAT,
    ZE_SAMPLER_FILTER_MODE_LINEAR as LINEAR, ZE_SAMPLER_FILTER_MODE_NEAREST as NEAREST,
    ze_result_t, ze_sampler_address_mode_t as Mode, ze_sampler_filter_mode_t as Filter,
};

use super::super::runtime::{call, must};
use super::support::{A, B, G, Image, R, Setup, description};

const MODES: [Mode; 5] = [NONE, REPEAT, CLAMP, BORDER, MIRROR];

fn sampler(
    setup: &Setup,
    mode: Mode,
    filter: Filter,
    normalized: bool,
) -> Result<sys::ze_sampler_handle_t, ze_result_t> {
    let desc = sys::ze_sampler_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_SAMPLER_DESC,
        addressMode: mode,
        filterMode: filter,
        isNormalized: normalized.into(),
        ..Default::default()
    };
    let (context, device) = (setup.runtime.context, setup.runtime.device);
    let mut made = ptr::null_mut();
    match call!(
        setup.runtime,
        zeSamplerCreate(context, device, &raw const desc, &raw mut made)
    ) {
        OK => Ok(made),
        code => Err(code),
    }
}

/// The pixels of one dimension that a coordinate reads, with their weights; `None` is the border.
fn taps(
    mode: Mode,
    filter: Filter,
    normalized: bool,
    at: f32,
    length: usize,
) -> [(Option<usize>, f32); 2] {
    let size = length as f32;
    let u = match mode {
        REPEAT => (at - at.floor()) * size,
        MIRROR => (at - 2.0 * (0.5 * at).round_ties_even()).abs() * size,
        _ if normalized => at * size,
        _ => at,
    };
    let place = |index: i64| {
        let length = length as i64;
        let index = match mode {
            REPEAT => index.rem_euclid(length),
            BORDER if !(0..length).contains(&index) => return None,
            _ => index.clamp(0, length - 1),
        };
        Some(index as usize)
    };
    if filter == NEAREST {
        return [(place(u.floor() as i64), 1.0), (None, 0.0)];
    }
    let low = (u - 0.5).floor();
    let weight = u - 0.5 - low;
    let low = low as i64;
    [(place(low), 1.0 - weight), (place(low + 1), weight)]
}

/// The four channels at a coordinate.
fn expected(
    image: &Image,
    values: &[f32],
    mode: Mode,
    filter: Filter,
    normalized: bool,
    at: [f32; 4],
) -> [f32; 4] {
    let [width, height, depth] = image.size;
    let along = |axis: usize, length| {
        if image.size[axis..].iter().all(|&extent| extent == 1) {
            [(Some(0), 1.0), (None, 0.0)]
        } else {
            taps(mode, filter, normalized, at[axis], length)
        }
    };
    let mut sum = [0.0; 4];
    for (z, z_weight) in along(2, depth) {
        for (y, y_weight) in along(1, height) {
            for (x, x_weight) in along(0, width) {
                let (Some(x), Some(y), Some(z)) = (x, y, z) else {
                    continue; // The border is 0 in every channel, as the format has alpha.
                };
                let first = ((z * height + y) * width + x) * 4;
                for (sum, value) in sum.iter_mut().zip(&values[first..]) {
                    *sum += x_weight * y_weight * z_weight * value;
                }
            }
        }
    }
    sum
}

/// Coordinates along a dimension, none near the border between two pixels. Outside of the image only where that is defined.
fn coordinates(mode: Mode, normalized: bool, length: usize) -> Vec<f32> {
    let inside = (0..length).flat_map(|pixel| [0.61, 0.83].map(|part| pixel as f32 + part));
    let size = length as f32;
    let mut all: Vec<f32> = inside.collect();
    if mode != NONE {
        all.extend([
            -0.3,
            -1.2,
            -2.7 * size + 0.3,
            size + 0.2,
            size + 1.7,
            3.6 * size + 0.1,
        ]);
    } else {
        all.retain(|&at| at > 0.5 && at < size - 0.5);
    }
    if normalized {
        for at in &mut all {
            *at /= size;
        }
    }
    all
}

fn check(image: &Image, name: &str, values: &[f32], mode: Mode, filter: Filter, normalized: bool) {
    let setup = image.setup;
    let axes = [0, 1, 2].map(|axis| {
        if image.size[axis..].iter().all(|&extent| extent == 1) {
            vec![0.0]
        } else {
            coordinates(mode, normalized, image.size[axis])
        }
    });
    let mut points = Vec::new();
    for &z in &axes[2] {
        for &y in &axes[1] {
            points.extend(axes[0].iter().map(|&x| [x, y, z, 0.0]));
        }
    }
    let bits: Vec<u32> = points.iter().flatten().map(|it| it.to_bits()).collect();
    let (at, out) = (
        setup.runtime.shared(&bits),
        setup.runtime.shared(&vec![0; bits.len()]),
    );
    let sampler = sampler(setup, mode, filter, normalized).unwrap();
    let kernel = setup.kernel(name);
    setup.set(kernel, 0, image.handle);
    setup.set(kernel, 1, sampler);
    setup.set(kernel, 2, at.as_ptr());
    setup.set(kernel, 3, out.as_ptr());
    // A kernel keeps the samplers that are its arguments.
    must!(setup.runtime, zeSamplerDestroy(sampler));
    let list = setup.runtime.immediate(true);
    assert_eq!(setup.launch(list, kernel, [points.len(), 1, 1]), OK);
    assert_eq!(setup.runtime.synchronize(list), OK);
    for (point, found) in points.iter().zip(out.chunks(4)) {
        let expected = expected(image, values, mode, filter, normalized, *point);
        for (found, expected) in found.iter().zip(expected) {
            let found = f32::from_bits(*found);
            assert!(
                (found - expected).abs() < 1e-3,
                "{name} {mode:?} {filter:?} {normalized} at {point:?}: {found} instead of {expected}"
            );
        }
    }
}

#[test]
fn every_sampler_reads_what_opencl_specifies() {
    let Some(setup) = Setup::get() else { return };
    for (image_type, name) in [
        (sys::ZE_IMAGE_TYPE_1D, "sample_1d"),
        (sys::ZE_IMAGE_TYPE_2D, "sample_2d"),
        (sys::ZE_IMAGE_TYPE_3D, "sample_3d"),
    ] {
        let (layout, channel) = (
            sys::ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32,
            sys::ZE_IMAGE_FORMAT_TYPE_FLOAT,
        );
        let image = setup
            .image(&description(image_type, layout, channel, [R, G, B, A]))
            .unwrap();
        let values: Vec<f32> = (0..image.pixels() * 4)
            .map(|index| (index * 29 % 61) as f32 / 8.0)
            .collect();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let list = setup.runtime.immediate(true);
        assert_eq!(image.append_write(list, &bytes, None), OK);
        assert_eq!(setup.runtime.synchronize(list), OK);
        for mode in MODES {
            for filter in [NEAREST, LINEAR] {
                for normalized in [true, false] {
                    if normalized || ![REPEAT, MIRROR].contains(&mode) {
                        check(&image, name, &values, mode, filter, normalized);
                    }
                }
            }
        }
    }
}

#[test]
fn repetition_without_normalized_coordinates_ends_no_process() {
    let Some(setup) = Setup::get() else { return };
    let (layout, channel) = (
        sys::ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8,
        sys::ZE_IMAGE_FORMAT_TYPE_UNORM,
    );
    let desc = description(sys::ZE_IMAGE_TYPE_2D, layout, channel, [R, G, B, A]);
    let image = setup.image(&desc).unwrap();
    let (at, out) = (
        setup.runtime.shared(&[1.3_f32.to_bits(); 4]),
        setup.runtime.shared(&[0; 4]),
    );
    for mode in [REPEAT, MIRROR] {
        for filter in [NEAREST, LINEAR] {
            let sampler = sampler(setup, mode, filter, false).unwrap();
            let kernel = setup.kernel("sample_2d");
            setup.set(kernel, 0, image.handle);
            setup.set(kernel, 1, sampler);
            setup.set(kernel, 2, at.as_ptr());
            setup.set(kernel, 3, out.as_ptr());
            let list = setup.runtime.immediate(true);
            assert_eq!(setup.launch(list, kernel, [1; 3]), OK);
            assert_eq!(setup.runtime.synchronize(list), OK);
        }
    }
}

#[test]
fn unknown_modes_are_refused() {
    let Some(setup) = Setup::get() else { return };
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ENUMERATION;
    assert_eq!(
        sampler(setup, sys::ze_sampler_address_mode_t(5), NEAREST, true),
        Err(invalid)
    );
    assert_eq!(
        sampler(setup, NONE, sys::ze_sampler_filter_mode_t(2), true),
        Err(invalid)
    );
    let made = sampler(setup, NONE, NEAREST, true).unwrap();
    must!(setup.runtime, zeSamplerDestroy(made));
    let gone = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    assert_eq!(call!(setup.runtime, zeSamplerDestroy(made)), gone);
    let kernel = setup.kernel("sample_2d");
    assert_eq!(setup.runtime.set(kernel, 1, made), gone);
}
