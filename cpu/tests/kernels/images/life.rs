//! The order of images with other commands, and how long their memory lives.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::extensions;
use level_zero_sys::{ZE_RESULT_SUCCESS as OK, ze_result_t};

#[cfg(target_os = "linux")]
use super::super::forks::in_child;
use super::super::mutable::Mutable;
#[cfg(target_os = "linux")]
use super::super::process::alone;
use super::super::runtime::{call, must};
use super::support::{A, B, G, Image, R, Setup, description, pattern, plain};

const GONE: ze_result_t = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;

/// A large enough image that a kernel on it takes a while, and the memory that a kernel writes to it.
fn large(setup: &Setup) -> (Image<'_>, &'static mut [u32]) {
    let mut desc = plain(sys::ZE_IMAGE_TYPE_2D);
    (desc.width, desc.height) = (64, 32);
    let image = setup.image(&desc).unwrap();
    let memory = setup.runtime.shared(&vec![0; 64 * 32 * 4]);
    (image, memory)
}

/// The bytes of pixels whose channels are these.
fn bytes_of(channels: &[u32]) -> Vec<u8> {
    channels.iter().map(|channel| *channel as u8).collect()
}

fn execute(setup: &Setup, list: sys::ze_command_list_handle_t) -> ze_result_t {
    let desc = sys::ze_command_queue_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
        ..Default::default()
    };
    let runtime = &setup.runtime;
    let (mut queue, mut list) = (ptr::null_mut(), list);
    let (context, device) = (runtime.context, runtime.device);
    must!(
        runtime,
        zeCommandQueueCreate(context, device, &raw const desc, &raw mut queue)
    );
    let code = call!(
        runtime,
        zeCommandQueueExecuteCommandLists(queue, 1, &raw mut list, ptr::null_mut())
    );
    must!(runtime, zeCommandQueueSynchronize(queue, u64::MAX));
    must!(runtime, zeCommandQueueDestroy(queue));
    code
}

fn recorded(setup: &Setup) -> sys::ze_command_list_handle_t {
    let desc = sys::ze_command_list_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
        ..Default::default()
    };
    let (context, device) = (setup.runtime.context, setup.runtime.device);
    let mut list = ptr::null_mut();
    must!(
        setup.runtime,
        zeCommandListCreate(context, device, &raw const desc, &raw mut list)
    );
    list
}

#[test]
fn a_copy_follows_the_kernel_that_it_waits_for() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let (image, memory) = large(setup);
    let [writer, copier] = [
        runtime.immediate(false),
        runtime.immediate_of_group(1, false),
    ];
    let events = runtime.events(2);
    let kernel = setup.kernel("write_2d_u");
    setup.set(kernel, 0, image.handle);
    setup.set(kernel, 1, memory.as_ptr());
    setup.set(kernel, 2, 64_u32);
    setup.set(kernel, 3, 32_u32);
    let groups = sys::ze_group_count_t {
        groupCountX: 64,
        groupCountY: 32,
        groupCountZ: 1,
    };
    let mut bytes = vec![0; image.pixels() * 4];
    for round in 0..60 {
        for (index, channel) in memory.iter_mut().enumerate() {
            *channel = ((index + round * 7) % 256) as u32;
        }
        let (mut written, copied) = (events[0], events[1]);
        must!(
            runtime,
            zeCommandListAppendLaunchKernel(
                writer,
                kernel,
                &raw const groups,
                written,
                0,
                ptr::null_mut()
            )
        );
        must!(
            runtime,
            zeCommandListAppendImageCopyToMemory(
                copier,
                bytes.as_mut_ptr().cast(),
                image.handle,
                ptr::null(),
                copied,
                1,
                &raw mut written
            )
        );
        must!(runtime, zeEventHostSynchronize(copied, u64::MAX));
        assert_eq!(bytes, bytes_of(memory), "round {round}");
        must!(runtime, zeEventHostReset(written));
        must!(runtime, zeEventHostReset(copied));
    }
}

#[test]
fn a_recorded_list_runs_again_on_the_bytes_of_then() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let (first, second) = (
        setup.image(&plain(sys::ZE_IMAGE_TYPE_3D)).unwrap(),
        setup.image(&plain(sys::ZE_IMAGE_TYPE_3D)).unwrap(),
    );
    let length = first.pixels() * 4;
    let (source, target) = (
        runtime.shared(&vec![0; length / 4]),
        runtime.shared(&vec![0; length / 4]),
    );
    let channels = runtime.shared(&vec![0; length]);
    let list = recorded(setup);
    let barrier = || {
        must!(
            runtime,
            zeCommandListAppendBarrier(list, ptr::null_mut(), 0, ptr::null_mut())
        )
    };
    must!(
        runtime,
        zeCommandListAppendImageCopyFromMemory(
            list,
            first.handle,
            source.as_ptr().cast(),
            ptr::null(),
            ptr::null_mut(),
            0,
            ptr::null_mut()
        )
    );
    barrier();
    first.append_kernel(list, "read_3d_u", channels);
    barrier();
    second.append_kernel(list, "write_3d_u", channels);
    barrier();
    must!(
        runtime,
        zeCommandListAppendImageCopyToMemory(
            list,
            target.as_mut_ptr().cast(),
            second.handle,
            ptr::null(),
            ptr::null_mut(),
            0,
            ptr::null_mut()
        )
    );
    must!(runtime, zeCommandListClose(list));
    for round in 0..3 {
        for (index, word) in source.iter_mut().enumerate() {
            *word = (index as u32 + round).wrapping_mul(0x0102_0305);
        }
        assert_eq!(execute(setup, list), OK);
        assert_eq!(source, target, "round {round}");
    }
    must!(runtime, zeCommandListReset(list));
    must!(runtime, zeCommandListClose(list));
    target.fill(0);
    assert_eq!(execute(setup, list), OK);
    assert!(target.iter().all(|word| *word == 0));
    must!(runtime, zeCommandListDestroy(list));
}

#[test]
fn commands_in_flight_keep_a_destroyed_image() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    for round in 0..20 {
        let (image, memory) = large(setup);
        for (index, channel) in memory.iter_mut().enumerate() {
            *channel = ((index + round) % 251) as u32;
        }
        let mut bytes = vec![0; image.pixels() * 4];
        let list = runtime.immediate(true);
        let mut gate = runtime.events(1)[0];
        must!(
            runtime,
            zeCommandListAppendWaitOnEvents(list, 1, &raw mut gate)
        );
        image.append_kernel(list, "write_2d_u", memory);
        assert_eq!(image.append_read(list, &mut bytes, None), OK);
        let size = bytes.len() as u64;
        drop(image);
        // New memory does not get the image's addresses while it is in use.
        let other = runtime.shared(&vec![u32::MAX; size as usize / 4]);
        must!(runtime, zeEventHostSignal(gate));
        assert_eq!(runtime.synchronize(list), OK);
        assert_eq!(bytes, bytes_of(memory));
        assert!(other.iter().all(|word| *word == u32::MAX));
    }
}

#[test]
fn a_destroyed_image_is_an_error_wherever_it_was_recorded() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let (image, memory) = large(setup);
    let view = setup.view(&image, &plain(sys::ZE_IMAGE_TYPE_2D)).unwrap();
    let kernel = setup.kernel("write_2d_u");
    setup.set(kernel, 0, image.handle);
    setup.set(kernel, 1, memory.as_ptr());
    setup.set(kernel, 2, 64_u32);
    setup.set(kernel, 3, 32_u32);
    let lists = [recorded(setup), recorded(setup)];
    let mut bytes = vec![0; image.pixels() * 4];
    assert_eq!(image.append_read(lists[0], &mut bytes, None), OK);
    assert_eq!(setup.launch(lists[1], kernel, image.size), OK);
    for list in lists {
        must!(runtime, zeCommandListClose(list));
        assert_eq!(execute(setup, list), OK);
    }
    drop(image);
    // The address may belong to other memory by now.
    let other = runtime.shared(&vec![5; bytes.len() / 4]);
    for list in lists {
        assert_eq!(execute(setup, list), GONE);
    }
    let list = runtime.immediate(true);
    assert_eq!(setup.launch(list, kernel, [64, 32, 1]), GONE);
    assert_eq!(view.append_write(list, &[1; 80], None), GONE);
    assert_eq!(view.append_read(list, &mut bytes, None), GONE);
    let kernel = setup.kernel("read_2d_u");
    setup.set(kernel, 0, view.handle);
    setup.set(kernel, 1, memory.as_ptr());
    setup.set(kernel, 2, 5_u32);
    setup.set(kernel, 3, 4_u32);
    assert_eq!(setup.launch(list, kernel, view.size), GONE);
    assert!(other.iter().all(|word| *word == 5));
}

#[test]
fn a_view_has_the_pixels_of_its_image() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let image = setup.image(&plain(sys::ZE_IMAGE_TYPE_2D)).unwrap();
    let (layout, channel) = (
        sys::ZE_IMAGE_FORMAT_LAYOUT_32,
        sys::ZE_IMAGE_FORMAT_TYPE_UINT,
    );
    let words = description(sys::ZE_IMAGE_TYPE_2D, layout, channel, [R, G, B, A]);
    let view = setup.view(&image, &words).unwrap();
    let bytes = pattern(image.pixels() * 4, 3);
    let channels = runtime.shared(&vec![9; image.pixels() * 4]);
    let list = runtime.immediate(true);
    assert_eq!(image.append_write(list, &bytes, None), OK);
    view.append_kernel(list, "read_2d_u", channels);
    assert_eq!(runtime.synchronize(list), OK);
    for (pixel, channels) in bytes.chunks(4).zip(channels.chunks(4)) {
        assert_eq!(
            channels,
            [u32::from_le_bytes(pixel.try_into().unwrap()), 0, 0, 1]
        );
    }
    let id = |handle| {
        let mut properties = sys::ze_image_allocation_ext_properties_t {
            stype: sys::ZE_STRUCTURE_TYPE_IMAGE_ALLOCATION_EXT_PROPERTIES,
            ..Default::default()
        };
        must!(
            runtime,
            zeImageGetAllocPropertiesExt(runtime.context, handle, &raw mut properties)
        );
        properties.id
    };
    assert_ne!(id(image.handle), 0);
    assert_eq!(id(image.handle), id(view.handle));
    let mut memory = sys::ze_image_memory_properties_exp_t {
        stype: sys::ZE_STRUCTURE_TYPE_IMAGE_MEMORY_EXP_PROPERTIES,
        ..Default::default()
    };
    must!(
        runtime,
        zeImageGetMemoryPropertiesExp(view.handle, &raw mut memory)
    );
    assert_eq!(
        (memory.size, memory.rowPitch, memory.slicePitch),
        (80, 20, 80)
    );
    let mut larger = words;
    larger.height += 1;
    let code = setup.view(&image, &larger).err();
    assert_eq!(code, Some(sys::ZE_RESULT_ERROR_INVALID_SIZE));
}

#[test]
fn an_image_can_be_in_memory_of_the_program() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let memory = runtime.shared(&[0; 21]);
    let at = |pointer: *mut u32, height| {
        let pitched = extensions::ze_image_pitched_exp_desc_t {
            stype: extensions::ZE_STRUCTURE_TYPE_PITCHED_IMAGE_EXP_DESC,
            pNext: ptr::null(),
            ptr: pointer.cast(),
        };
        let desc = sys::ze_image_desc_t {
            pNext: (&raw const pitched).cast(),
            height,
            ..plain(sys::ZE_IMAGE_TYPE_2D)
        };
        setup.image(&desc)
    };
    let image = at(memory.as_mut_ptr(), 4).unwrap();
    let channels: Vec<u32> = (0..80).collect();
    let list = runtime.immediate(true);
    image.append_kernel(list, "write_2d_u", runtime.shared(&channels));
    assert_eq!(runtime.synchronize(list), OK);
    for (pixel, channels) in memory.iter().zip(channels.chunks(4)) {
        assert_eq!(pixel.to_le_bytes().to_vec(), bytes_of(channels));
    }
    assert_eq!(memory[20], 0);
    drop(image);
    let size = sys::ZE_RESULT_ERROR_INVALID_SIZE;
    assert_eq!(at(memory.as_mut_ptr(), 5).err(), Some(size));
    let alignment = sys::ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    let odd = memory.as_mut_ptr().wrapping_byte_add(2);
    assert_eq!(at(odd, 1).err(), Some(alignment));
    // Aligned to its own pixels, but not to the larger ones of a view, which a kernel reads as vectors.
    let image = at(memory.as_mut_ptr().wrapping_add(1), 4).unwrap();
    let large = description(
        sys::ZE_IMAGE_TYPE_1D,
        sys::ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32,
        sys::ZE_IMAGE_FORMAT_TYPE_UINT,
        [R, G, B, A],
    );
    assert_eq!(setup.view(&image, &large).err(), Some(alignment));
    drop(image);
    let image = at(memory.as_mut_ptr(), 4).unwrap();
    drop(setup.view(&image, &large).unwrap());
    drop(image);
    let mut host = [0_u32; 20];
    assert_eq!(at(host.as_mut_ptr(), 4).err(), Some(GONE));
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    assert_eq!(at(ptr::null_mut(), 4).err(), Some(null));
}

#[test]
fn a_launch_of_a_mutable_list_gets_another_image() {
    let Some(setup) = Setup::get() else { return };
    let runtime = &setup.runtime;
    let desc = plain(sys::ZE_IMAGE_TYPE_1D);
    let (first, second) = (setup.image(&desc).unwrap(), setup.image(&desc).unwrap());
    let list = runtime.immediate(true);
    let (one, two) = (pattern(20, 1), pattern(20, 2));
    assert_eq!(first.append_write(list, &one, None), OK);
    assert_eq!(second.append_write(list, &two, None), OK);
    assert_eq!(runtime.synchronize(list), OK);
    let channels = runtime.shared(&[0; 20]);
    let mutable = Mutable::new(runtime, true);
    let id = mutable.next(0).unwrap();
    let kernel = setup.kernel("read_1d_u");
    setup.set(kernel, 0, first.handle);
    setup.set(kernel, 1, channels.as_ptr());
    setup.set(kernel, 2, 5_u32);
    setup.set(kernel, 3, 1_u32);
    assert_eq!(setup.launch(mutable.list, kernel, first.size), OK);
    mutable.close();
    mutable.execute();
    assert_eq!(bytes_of(channels), one);
    assert_eq!(mutable.argument(id, 0, &second.handle), OK);
    mutable.close();
    mutable.execute();
    assert_eq!(bytes_of(channels), two);
    let wrong = setup.image(&plain(sys::ZE_IMAGE_TYPE_2D)).unwrap();
    assert_eq!(mutable.argument(id, 0, &wrong.handle), GONE);
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_has_the_images_of_its_parent() {
    alone("images::life::a_fork_with_images");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by a_child_has_the_images_of_its_parent"]
fn a_fork_with_images() {
    let Some(setup) = Setup::get() else { return };
    let (image, memory) = large(setup);
    let mut turn = |image: &Image, seed: usize| {
        for (index, channel) in memory.iter_mut().enumerate() {
            *channel = ((index + seed) % 253) as u32;
        }
        let mut bytes = vec![0; image.pixels() * 4];
        let list = setup.runtime.immediate(true);
        image.append_kernel(list, "write_2d_u", memory);
        assert_eq!(image.append_read(list, &mut bytes, None), OK);
        assert_eq!(setup.runtime.synchronize(list), OK);
        bytes == bytes_of(memory)
    };
    assert!(turn(&image, 1));
    in_child(|| {
        let inherited = turn(&image, 2);
        let (own, _) = large(setup);
        inherited && turn(&own, 3)
    });
    // The child's writes are private.
    let mut bytes = vec![0; image.pixels() * 4];
    let list = setup.runtime.immediate(true);
    assert_eq!(image.append_read(list, &mut bytes, None), OK);
    assert_eq!(setup.runtime.synchronize(list), OK);
    let first: Vec<u8> = (0..bytes.len())
        .map(|index| ((index + 1) % 253) as u8)
        .collect();
    assert_eq!(bytes, first);
}
