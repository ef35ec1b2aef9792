//! The allocations that a kernel's arguments refer to.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use level_zero_sys::extensions::{self, ze_kernel_allocation_exp_properties_t as Allocation};

use super::launches::Setup;

type Ask =
    unsafe extern "C" fn(sys::ze_kernel_handle_t, *mut u32, *mut Allocation) -> sys::ze_result_t;

/// How many there are, and the first ones, of which there is room for `room`.
fn ask(setup: &Setup, kernel: sys::ze_kernel_handle_t, room: u32) -> (u32, Vec<Allocation>) {
    // SAFETY: the type is the specification's.
    let ask: Ask = unsafe {
        setup
            .runtime
            .extension(c"zeKernelGetAllocationPropertiesExp")
    };
    let empty = Allocation {
        stype: extensions::ZE_STRUCTURE_TYPE_KERNEL_ALLOCATION_PROPERTIES,
        pNext: ptr::null_mut(),
        base: 0,
        size: 0,
        type_: sys::ZE_MEMORY_TYPE_UNKNOWN,
        argIndex: u32::MAX,
    };
    let (mut count, mut places) = (room, vec![empty; room as usize]);
    // SAFETY: there is room for as many as the count says.
    let code = unsafe { ask(kernel, &raw mut count, places.as_mut_ptr()) };
    assert_eq!(code, OK);
    places.truncate(count as usize);
    (count, places)
}

#[test]
fn allocations_are_those_of_the_arguments() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let kernel = setup.kernel("add", 1);
    assert_eq!(ask(&setup, kernel, 0).0, 0, "nothing is set");
    let (a, c) = (runtime.shared(&[0; 100]), runtime.shared(&[0; 50]));
    let own = [0_u32; 4];
    for (index, pointer) in [&raw const a[7], own.as_ptr(), c.as_ptr()]
        .into_iter()
        .enumerate()
    {
        assert_eq!(runtime.set(kernel, index as u32, pointer), OK);
    }
    assert_eq!(ask(&setup, kernel, 0).0, 2);
    let (count, found) = ask(&setup, kernel, 5);
    assert_eq!(count, 2);
    for (found, (memory, index)) in found.iter().zip([(&*a, 0), (&*c, 2)]) {
        assert_eq!(
            (found.base, found.argIndex),
            (memory.as_ptr() as u64, index)
        );
        assert_eq!(
            (found.size, found.type_),
            (size_of_val(memory), sys::ZE_MEMORY_TYPE_SHARED)
        );
    }
    assert_eq!(ask(&setup, kernel, 1).1[0].argIndex, 0);
}
