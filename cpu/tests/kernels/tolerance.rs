//! Launches that Intel's driver tolerates, and those that a group of queues refuses.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;

use super::launches::Setup;
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
