//! Launches that Intel's driver tolerates, and those that a group of queues refuses.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;

use super::images::support as images;
use super::launches::Setup;
use super::mutable::Mutable;
use super::process;
use super::programs;
use super::runtime::{Runtime, call, must};
use crate::common::STRICT;

/// Intel's driver cuts longer values, and extends shorter ones by zeros.
#[test]
fn values_of_another_size_are_tolerated() {
    process::alone_with(
        "tolerance::child_passes_values_of_another_size",
        &[(STRICT, "0")],
    );
}

#[test]
#[ignore = "run by values_of_another_size_are_tolerated"]
fn child_passes_values_of_another_size() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    let x = runtime.shared(&[0]);
    let kernel = setup.kernel("increase", 1);
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    let shorter = &|| runtime.set(kernel, 1, [0xff_u8, 1]);
    let longer = &|| runtime.set(kernel, 1, [0x1_0000_0000_u64 + 5, 7]);
    let cases: [(&dyn Fn() -> sys::ze_result_t, u32); 2] = [(shorter, 0x1ff), (longer, 5)];
    for (set, expected) in cases {
        assert_eq!(set(), OK);
        // The first half of a structure of two numbers, of which the kernel adds the second.
        assert_eq!(runtime.set(kernel, 2, 9_u32), OK);
        x[0] = 0;
        runtime.launch(list, kernel, 1, ptr::null_mut(), &[]);
        assert_eq!(runtime.synchronize(list), OK);
        assert_eq!(x[0], expected);
    }
}

#[test]
fn kernels_are_refused_by_the_group_that_copies() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate_of_group(1, true);
    let x = runtime.shared(&[7]);
    let kernel = setup.kernel("constant", 1);
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    assert_eq!(
        runtime.append_launch(list, kernel, 1, ptr::null_mut(), &[]),
        sys::ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
    );
}

#[test]
fn a_kernel_outlives_its_module() {
    process::alone_with("tolerance::child_destroys_the_module", &[(STRICT, "0")]);
}

#[test]
#[ignore = "run by a_kernel_outlives_its_module"]
fn child_destroys_the_module() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&programs::module(), &[]).unwrap();
    let kernel = runtime.kernel(module, "add").unwrap();
    must!(runtime, zeModuleDestroy(module));
    let list = runtime.immediate(true);
    let (a, b, c) = (
        runtime.shared(&[1, 2]),
        runtime.shared(&[30, 40]),
        runtime.shared(&[0; 2]),
    );
    for (index, memory) in [a.as_ptr(), b.as_ptr(), c.as_ptr()].into_iter().enumerate() {
        assert_eq!(runtime.set(kernel, index as u32, memory), OK);
    }
    runtime.launch(list, kernel, 2, ptr::null_mut(), &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(c, [31, 42]);
    must!(runtime, zeKernelDestroy(kernel));
}

#[test]
fn regions_may_name_dimensions_that_the_image_lacks() {
    process::alone_with("tolerance::child_copies_flat_regions", &[(STRICT, "0")]);
}

#[test]
#[ignore = "run by regions_may_name_dimensions_that_the_image_lacks"]
fn child_copies_flat_regions() {
    let Some(setup) = images::Setup::get() else {
        return;
    };
    let list = setup.runtime.immediate(true);
    for (image_type, dimensions) in [
        (sys::ZE_IMAGE_TYPE_1D, 1),
        (sys::ZE_IMAGE_TYPE_BUFFER, 1),
        (sys::ZE_IMAGE_TYPE_1DARRAY, 2),
        (sys::ZE_IMAGE_TYPE_2D, 2),
        (sys::ZE_IMAGE_TYPE_2DARRAY, 3),
        (sys::ZE_IMAGE_TYPE_3D, 3),
    ] {
        let image = setup.image(&images::plain(image_type)).unwrap();
        let all = images::pattern(4 * image.pixels(), 1);
        assert_eq!(image.append_write(list, &all, None), OK);
        // The last pixel of the dimensions that the image has, and a place far outside of the others.
        let mut origin = [9_u32, 9, 9];
        for (origin, size) in origin.iter_mut().zip(image.size).take(dimensions) {
            *origin = size as u32 - 1;
        }
        let [origin_x, origin_y, origin_z] = origin;
        let [height, depth] = [1, 2].map(|axis| if axis < dimensions { 1 } else { 7 });
        let region = sys::ze_image_region_t {
            originX: origin_x,
            originY: origin_y,
            originZ: origin_z,
            width: 1,
            height,
            depth,
        };
        let mut pixel = [0; 8];
        assert_eq!(image.append_read(list, &mut pixel, Some(&region)), OK);
        assert_eq!(pixel[..4], all[all.len() - 4..], "{image_type:?}");
        assert_eq!(pixel[4..], [0; 4], "nothing behind it");
    }
}

/// The second argument is the end of what the first one points to, as of a range, and the base of a neighbour.
#[test]
fn a_recorded_launch_does_not_need_the_neighbour_of_its_array() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let all: Vec<_> = (0..8)
        .map(|_| runtime.shared(&[3_u32; 16]).as_mut_ptr())
        .collect();
    let beside = |it: &&*mut u32| all.contains(&it.wrapping_add(16));
    // With the checker they do not touch.
    let Some(array) = all.iter().find(beside) else {
        return;
    };
    let end = array.wrapping_add(16);
    let kernel = setup.kernel("add", 1);
    for (index, pointer) in [*array, end, *array].into_iter().enumerate() {
        assert_eq!(runtime.set(kernel, index as u32, pointer), OK);
    }
    let list = Mutable::new(runtime, false);
    runtime.launch(list.list, kernel, 0, std::ptr::null_mut(), &[]);
    list.close();
    list.execute();
    must!(runtime, zeMemFree(runtime.context, end.cast()));
    list.execute();
}
