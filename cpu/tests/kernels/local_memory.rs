//! The local memory of launches.

use std::ops::Range;
use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::{ZE_RESULT_SUCCESS as OK, extensions};
use spirv::StorageClass;

use super::launches::Setup;
use super::mutable::Mutable;
use super::programs::Program;
use super::runtime::{Runtime, call, must};

const NONE: sys::ze_result_t = sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;

/// `two(x, a, b)`: `a[0] = b[0] = i; x[i] = a[0] + b[0]`, where `a` and `b` are in local memory. In between it also sets the
/// elements `others` of both.
fn two_arrays(others: Range<u64>) -> Vec<u8> {
    let mut p = Program::new();
    let (int, global) = (p.int, p.global);
    let local = p.b.type_pointer(None, StorageClass::Workgroup, int);
    let (_, arguments) = p.kernel("two", &[global, local, local]);
    let i = p.index();
    let narrow = p.b.u_convert(int, None, i).unwrap();
    p.store(arguments[1], narrow);
    p.store(arguments[2], narrow);
    for place in others {
        let place = p.b.constant_bit64(p.long, place);
        for array in [arguments[1], arguments[2]] {
            let address =
                p.b.in_bounds_ptr_access_chain(local, None, array, place, []);
            p.store(address.unwrap(), narrow);
        }
    }
    let (a, b) = (p.load(arguments[1]), p.load(arguments[2]));
    let sum = p.b.i_add(int, None, a, b).unwrap();
    let x = p.at(arguments[0], i);
    p.store(x, sum);
    p.end();
    p.bytes()
}

/// The device's local memory, in bytes.
fn most(runtime: &Runtime) -> usize {
    let mut properties = sys::ze_device_compute_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES,
        ..Default::default()
    };
    must!(
        runtime,
        zeDeviceGetComputeProperties(runtime.device, &raw mut properties)
    );
    properties.maxSharedLocalMemory as usize
}

fn set_local(runtime: &Runtime, kernel: sys::ze_kernel_handle_t, index: u32, size: usize) {
    must!(
        runtime,
        zeKernelSetArgumentValue(kernel, index, size, ptr::null())
    );
}

#[test]
fn arguments_that_exceed_it_together_are_refused_at_the_append() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&two_arrays(0..0), &[]).unwrap();
    let kernel = runtime.kernel(module, "two").unwrap();
    let mut properties = sys::ze_kernel_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES,
        ..Default::default()
    };
    must!(runtime, zeKernelGetProperties(kernel, &raw mut properties));
    assert_eq!(
        properties.localMemSize, 0,
        "the kernel declares none itself"
    );
    must!(runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
    let (x, most) = (runtime.shared(&[9; 4]), most(&runtime));
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    let list = runtime.immediate(true);
    set_local(&runtime, kernel, 1, most);
    set_local(&runtime, kernel, 2, most);
    let event = runtime.events(1)[0];
    assert_eq!(runtime.append_launch(list, kernel, 4, event, &[]), NONE);
    let description = runtime.last_error();
    assert!(description.contains("local memory"), "{description}");
    let code = call!(runtime, zeEventQueryStatus(event));
    assert_eq!(code, sys::ZE_RESULT_NOT_READY);
    assert_eq!(runtime.last_error(), description);
    let code = call!(runtime, zeKernelSetGroupSize(kernel, 0, 1, 1));
    assert_ne!(code, OK);
    assert_eq!(runtime.last_error(), "", "another call's description");
    set_local(&runtime, kernel, 2, 4);
    assert_eq!(runtime.append_launch(list, kernel, 4, event, &[]), NONE);
    // One that is larger than all of it is set, too, as by Intel's driver.
    set_local(&runtime, kernel, 2, usize::MAX);
    assert_eq!(runtime.append_launch(list, kernel, 4, event, &[]), NONE);
    // All of it is no error.
    set_local(&runtime, kernel, 2, 4);
    set_local(&runtime, kernel, 1, most - 4);
    runtime.launch(list, kernel, 4, event, &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(x, [0, 2, 4, 6]);
}

#[test]
fn a_mutable_launch_does_not_grow_beyond_it() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let module = runtime.build(&two_arrays(0..0), &[]).unwrap();
    let kernel = runtime.kernel(module, "two").unwrap();
    must!(runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
    let x = runtime.shared(&[9; 4]);
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    set_local(runtime, kernel, 1, most(runtime) / 2);
    set_local(runtime, kernel, 2, most(runtime) / 2);
    let list = Mutable::new(runtime, true);
    let id = list
        .next(extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS)
        .unwrap();
    runtime.launch(list.list, kernel, 4, ptr::null_mut(), &[]);
    list.close();
    assert_eq!(list.local_argument(id, 1, most(runtime) / 2 + 4), NONE);
    assert_eq!(list.local_argument(id, 1, 64), OK);
    list.close();
    list.execute();
    assert_eq!(x, [0, 2, 4, 6]);
}

/// ggml's soft_max asks for 16 numbers behind its row and writes 64. On a GPU nobody notices.
#[test]
fn a_small_overflow_stays_in_the_local_memory_of_its_argument() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&two_arrays(1024..1072), &[]).unwrap();
    let kernel = runtime.kernel(module, "two").unwrap();
    must!(runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
    let x = runtime.shared(&[9; 4]);
    assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
    set_local(&runtime, kernel, 1, 4096);
    set_local(&runtime, kernel, 2, 4096);
    let list = runtime.immediate(true);
    runtime.launch(list, kernel, 4, runtime.events(1)[0], &[]);
    assert_eq!(runtime.synchronize(list), OK);
    assert_eq!(x, [0, 2, 4, 6]);
}
