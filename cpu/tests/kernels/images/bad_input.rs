//! Descriptors, regions and arguments that must be refused, each with its code.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::{ZE_RESULT_SUCCESS as OK, ze_result_t};

use super::super::process::alone_with;
use super::super::runtime::{Runtime, call, must};
use super::programs;
use super::support::{A, B, G, Image, R, Setup, TYPES, description, plain};

const INVALID: ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const ENUMERATION: ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ENUMERATION;
const SIZE: ze_result_t = sys::ZE_RESULT_ERROR_INVALID_SIZE;
const TOO_LARGE: ze_result_t = sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
const NULL_HANDLE: ze_result_t = sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
const NULL_POINTER: ze_result_t = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;

/// The result of creating an image from a descriptor that `change` has spoiled.
fn spoiled(
    setup: &Setup,
    image_type: sys::ze_image_type_t,
    change: impl Fn(&mut sys::ze_image_desc_t),
) -> ze_result_t {
    let mut desc = plain(image_type);
    change(&mut desc);
    setup.image(&desc).err().unwrap_or(OK)
}

#[test]
fn wrong_descriptors_are_refused() {
    let Some(setup) = Setup::get() else { return };
    for image_type in TYPES {
        let spoiled =
            |change: &dyn Fn(&mut sys::ze_image_desc_t)| spoiled(setup, image_type, change);
        assert_eq!(spoiled(&|_| ()), OK);
        assert_eq!(
            spoiled(&|desc| desc.stype = sys::ZE_STRUCTURE_TYPE_FENCE_DESC),
            INVALID
        );
        assert_eq!(spoiled(&|desc| desc.flags = 4), ENUMERATION);
        assert_eq!(
            spoiled(&|desc| desc.type_ = sys::ze_image_type_t(6)),
            ENUMERATION
        );
        let layout = sys::ze_image_format_layout_t(46);
        assert_eq!(spoiled(&|desc| desc.format.layout = layout), ENUMERATION);
        let channel = sys::ze_image_format_type_t(5);
        assert_eq!(spoiled(&|desc| desc.format.type_ = channel), ENUMERATION);
        let swizzle = sys::ze_image_format_swizzle_t(8);
        assert_eq!(spoiled(&|desc| desc.format.w = swizzle), ENUMERATION);
        assert_eq!(spoiled(&|desc| desc.miplevels = 1), INVALID);
        assert_eq!(spoiled(&|desc| desc.width = 0), TOO_LARGE);
        assert_eq!(spoiled(&|desc| desc.width = 1 << 33), TOO_LARGE);
        assert_eq!(spoiled(&|desc| desc.width = u64::MAX), TOO_LARGE);
        let chained = |desc: &mut sys::ze_image_desc_t| {
            static UNKNOWN: [usize; 2] = [0x1234, 0];
            desc.pNext = UNKNOWN.as_ptr().cast();
        };
        let unsupported = sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
        assert_eq!(spoiled(&chained), unsupported);
    }
    let of =
        |image_type, change: &dyn Fn(&mut sys::ze_image_desc_t)| spoiled(setup, image_type, change);
    for image_type in [
        sys::ZE_IMAGE_TYPE_2D,
        sys::ZE_IMAGE_TYPE_2DARRAY,
        sys::ZE_IMAGE_TYPE_3D,
    ] {
        assert_eq!(of(image_type, &|desc| desc.height = 0), TOO_LARGE);
        assert_eq!(of(image_type, &|desc| desc.height = u32::MAX), TOO_LARGE);
    }
    for image_type in [sys::ZE_IMAGE_TYPE_1DARRAY, sys::ZE_IMAGE_TYPE_2DARRAY] {
        assert_eq!(of(image_type, &|desc| desc.arraylevels = 0), TOO_LARGE);
        assert_eq!(
            of(image_type, &|desc| desc.arraylevels = u32::MAX),
            TOO_LARGE
        );
    }
    assert_eq!(of(sys::ZE_IMAGE_TYPE_3D, &|desc| desc.depth = 0), TOO_LARGE);
    assert_eq!(
        of(sys::ZE_IMAGE_TYPE_BUFFER, &|desc| desc.width = 7),
        TOO_LARGE
    );
    // Dimensions that a type does not have are ignored.
    let others = |desc: &mut sys::ze_image_desc_t| {
        (desc.height, desc.depth, desc.arraylevels) = (0, u32::MAX, 0);
    };
    assert_eq!(of(sys::ZE_IMAGE_TYPE_1D, &others), OK);
}

#[test]
fn images_within_the_limits_need_memory() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let mut limits = sys::ze_device_image_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES,
        ..Default::default()
    };
    must!(
        runtime,
        zeDeviceGetImageProperties(runtime.device, &raw mut limits)
    );
    assert!(limits.maxImageDims1D >= 16384 && limits.maxImageDims2D >= 16384);
    assert!(limits.maxImageDims3D >= 2048 && limits.maxImageArraySlices >= 2048);
    assert!(limits.maxImageBufferSize >= 1 << 16);
    assert!(limits.maxSamplers >= 16 && limits.maxReadImageArgs >= 128);
    assert!(limits.maxWriteImageArgs >= 64);
    let mut desc = plain(sys::ZE_IMAGE_TYPE_2DARRAY);
    desc.width = limits.maxImageDims2D.into();
    desc.height = limits.maxImageDims2D;
    desc.arraylevels = limits.maxImageArraySlices;
    assert_eq!(setup.image(&desc).err(), Some(TOO_LARGE));
    let mut desc = plain(sys::ZE_IMAGE_TYPE_1D);
    desc.width = limits.maxImageDims1D.into();
    let widest = setup.image(&desc).unwrap();
    desc.width += 1;
    assert_eq!(setup.image(&desc).err(), Some(TOO_LARGE));
    drop(widest);
}

#[test]
fn handles_and_pointers_are_checked() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let (context, device) = (runtime.context, runtime.device);
    let desc = plain(sys::ZE_IMAGE_TYPE_2D);
    let mut image = ptr::null_mut();
    let null = ptr::null_mut();
    assert_eq!(
        call!(
            runtime,
            zeImageCreate(null, device, &raw const desc, &raw mut image)
        ),
        NULL_HANDLE
    );
    let null = ptr::null_mut();
    assert_eq!(
        call!(
            runtime,
            zeImageCreate(context, null, &raw const desc, &raw mut image)
        ),
        NULL_HANDLE
    );
    assert_eq!(
        call!(
            runtime,
            zeImageCreate(context, device, ptr::null(), &raw mut image)
        ),
        NULL_POINTER
    );
    assert_eq!(
        call!(
            runtime,
            zeImageCreate(context, device, &raw const desc, ptr::null_mut())
        ),
        NULL_POINTER
    );
    assert_eq!(call!(runtime, zeImageDestroy(ptr::null_mut())), NULL_HANDLE);
    assert_eq!(
        call!(runtime, zeSamplerDestroy(ptr::null_mut())),
        NULL_HANDLE
    );
    must!(
        runtime,
        zeImageCreate(context, device, &raw const desc, &raw mut image)
    );
    must!(runtime, zeContextMakeImageResident(context, device, image));
    must!(runtime, zeContextEvictImage(context, device, image));
    must!(runtime, zeImageDestroy(image));
    assert_eq!(call!(runtime, zeImageDestroy(image)), INVALID);
    assert_eq!(
        call!(runtime, zeContextMakeImageResident(context, device, image)),
        INVALID
    );
    let gone = std::mem::ManuallyDrop::new(Image {
        setup,
        handle: image,
        size: [5, 4, 1],
    });
    let list = runtime.immediate(true);
    assert_eq!(gone.append_write(list, &[0; 80], None), INVALID);
    let live = setup.image(&desc).unwrap();
    let null = ptr::null();
    assert_eq!(
        call!(
            runtime,
            zeCommandListAppendImageCopyFromMemory(
                list,
                live.handle,
                null,
                ptr::null(),
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        ),
        NULL_POINTER
    );
}

#[test]
fn regions_outside_of_the_image_are_refused() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    for image_type in TYPES {
        let image = setup.image(&plain(image_type)).unwrap();
        let mut bytes = vec![0; 4096];
        let [width, height, depth] = image.size.map(|extent| extent as u32);
        let whole = sys::ze_image_region_t {
            originX: 0,
            originY: 0,
            originZ: 0,
            width,
            height,
            depth,
        };
        let mut code = |region| image.append_read(list, &mut bytes, Some(&region));
        assert_eq!(code(whole), OK);
        assert_eq!(
            code(sys::ze_image_region_t {
                originX: 1,
                ..whole
            }),
            SIZE
        );
        assert_eq!(
            code(sys::ze_image_region_t {
                originY: 1,
                ..whole
            }),
            SIZE
        );
        assert_eq!(
            code(sys::ze_image_region_t {
                originZ: 1,
                ..whole
            }),
            SIZE
        );
        assert_eq!(
            code(sys::ze_image_region_t {
                originX: u32::MAX,
                ..whole
            }),
            SIZE
        );
        assert_eq!(
            code(sys::ze_image_region_t {
                width: u32::MAX,
                ..whole
            }),
            SIZE
        );
        assert_eq!(
            code(sys::ze_image_region_t {
                height: height + 1,
                ..whole
            }),
            SIZE
        );
        assert_eq!(
            code(sys::ze_image_region_t {
                depth: depth + 1,
                ..whole
            }),
            SIZE
        );
        assert_eq!(runtime.synchronize(list), OK);
        // Memory that is too short for the image.
        let short = runtime.shared(&[0; 3]);
        let code = call!(
            runtime,
            zeCommandListAppendImageCopyToMemory(
                list,
                short.as_mut_ptr().cast(),
                image.handle,
                ptr::null(),
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        assert_eq!(code, SIZE);
    }
}

#[test]
fn copies_between_images_need_the_same_pixels_and_no_overlap() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let list = runtime.immediate(true);
    let image = setup.image(&plain(sys::ZE_IMAGE_TYPE_2D)).unwrap();
    let (layout, channel) = (
        sys::ZE_IMAGE_FORMAT_LAYOUT_16,
        sys::ZE_IMAGE_FORMAT_TYPE_UINT,
    );
    let narrow = description(sys::ZE_IMAGE_TYPE_2D, layout, channel, [R, G, B, A]);
    let narrow = setup.image(&narrow).unwrap();
    let code = call!(
        runtime,
        zeCommandListAppendImageCopy(
            list,
            narrow.handle,
            image.handle,
            ptr::null_mut(),
            0,
            ptr::null_mut()
        )
    );
    assert_eq!(code, INVALID);
    let region = |x| sys::ze_image_region_t {
        originX: x,
        originY: 0,
        originZ: 0,
        width: 3,
        height: 2,
        depth: 1,
    };
    let (to, from, small) = (
        region(0),
        region(2),
        sys::ze_image_region_t {
            width: 2,
            ..region(3)
        },
    );
    for (from, expected) in [
        (from, sys::ZE_RESULT_ERROR_OVERLAPPING_REGIONS),
        (small, SIZE),
    ] {
        let code = call!(
            runtime,
            zeCommandListAppendImageCopyRegion(
                list,
                image.handle,
                image.handle,
                &raw const to,
                &raw const from,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        assert_eq!(code, expected);
    }
}

#[test]
fn arguments_must_be_images_and_samplers_of_the_kernel_s_types() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let kernel = setup.kernel("sample_2d");
    let plane = setup.image(&plain(sys::ZE_IMAGE_TYPE_2D)).unwrap();
    assert_eq!(runtime.set(kernel, 0, plane.handle), OK);
    assert_eq!(runtime.set(kernel, 1, plane.handle), INVALID);
    assert_eq!(runtime.set(kernel, 0, 0_usize), INVALID);
    assert_eq!(runtime.set(kernel, 0, 0x1234_5678_usize), INVALID);
    assert_eq!(runtime.set(kernel, 0, runtime.context), INVALID);
    assert_eq!(
        runtime.set(kernel, 0, 7_u32),
        sys::ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE
    );
    assert_eq!(
        call!(runtime, zeKernelSetArgumentValue(kernel, 0, 8, ptr::null())),
        INVALID
    );
    assert_eq!(
        call!(runtime, zeKernelSetArgumentValue(kernel, 1, 8, ptr::null())),
        INVALID
    );
    for image_type in TYPES {
        let image = setup.image(&plain(image_type)).unwrap();
        let fits = image_type == sys::ZE_IMAGE_TYPE_2D;
        let expected = if fits { OK } else { INVALID };
        assert_eq!(
            runtime.set(kernel, 0, image.handle),
            expected,
            "{image_type:?}"
        );
        if !fits {
            assert!(runtime.last_error().contains("another type of image"));
        }
    }
    // A launch without its sampler.
    let list = runtime.immediate(true);
    assert_eq!(setup.launch(list, kernel, [1; 3]), INVALID);
    assert!(runtime.last_error().contains("has not been set"));
    match runtime.build(&programs::cube(), &[]) {
        Ok(module) => {
            let kernel = runtime.kernel(module, "cube").unwrap();
            assert_eq!(runtime.set(kernel, 0, plane.handle), INVALID);
        }
        Err((code, _)) => assert_eq!(code, sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE),
    }
}

#[test]
fn without_an_opencl_runtime_there_are_no_images() {
    let nowhere = [("ZEUSM_OPENCL_LIBRARY", "/nowhere/libintelocl.so")];
    alone_with("images::bad_input::no_images", &nowhere);
}

#[test]
#[ignore = "run by without_an_opencl_runtime_there_are_no_images"]
fn no_images() {
    let runtime = Runtime::open();
    let mut limits = sys::ze_device_image_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES,
        maxImageDims1D: 9,
        maxSamplers: 9,
        ..Default::default()
    };
    must!(
        runtime,
        zeDeviceGetImageProperties(runtime.device, &raw mut limits)
    );
    assert_eq!((limits.maxImageDims1D, limits.maxSamplers), (0, 0));
    let (context, device) = (runtime.context, runtime.device);
    let (desc, mut image) = (plain(sys::ZE_IMAGE_TYPE_2D), ptr::null_mut());
    let unsupported = sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    let code = call!(
        runtime,
        zeImageCreate(context, device, &raw const desc, &raw mut image)
    );
    assert_eq!(code, unsupported);
    assert!(runtime.last_error().contains("no OpenCL runtime"));
    let desc = sys::ze_sampler_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_SAMPLER_DESC,
        ..Default::default()
    };
    let mut sampler = ptr::null_mut();
    let code = call!(
        runtime,
        zeSamplerCreate(context, device, &raw const desc, &raw mut sampler)
    );
    assert_eq!(code, unsupported);
}
