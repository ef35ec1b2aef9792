//! The entry points that append a launch with sizes that the host knows.

use std::ffi::c_void;

use level_zero_sys as sys;

use super::Launch;
use crate::abi::arguments::{chain, input};
use crate::abi::newer::sys_type;
use crate::abi::result::describe;
use crate::abi::result::{Answer, ensure};
use crate::command_list::{CommandList, Events};
use crate::engine::Order;
use crate::handle::resolve;
use crate::kernel::Kernel;

/// How many groups, as the API gives it.
pub type Groups = sys::ze_group_count_t;

/// The work-items of a group, as the API gives it since 1.14.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// In the first dimension.
    pub x: u32,
    /// In the second.
    pub y: u32,
    /// In the third.
    pub z: u32,
}

/// The three dimensions of a group count.
pub fn dimensions(groups: &Groups) -> [u32; 3] {
    [groups.groupCountX, groups.groupCountY, groups.groupCountZ]
}

/// `zeCommandListAppendLaunchKernel` and, with a chain of further wishes, `...WithParameters`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn append(
    list: sys::ze_command_list_handle_t,
    kernel: sys::ze_kernel_handle_t,
    groups: *const Groups,
    next: *const c_void,
    events: Events,
) -> Answer {
    let list = resolve::<CommandList>(list)?;
    let kernel = resolve::<Kernel>(kernel)?;
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let groups = dimensions(input(groups)?);
        check_wishes(next, groups)?;
        events.append(&list, Launch::capture(&kernel, groups)?, Order::Loose)
    }
}

/// `zeCommandListAppendLaunchCooperativeKernel`: every group is sure to run at the same time as the others.
///
/// # Safety
/// As for [`append`].
pub unsafe fn append_cooperative(
    list: sys::ze_command_list_handle_t,
    kernel: sys::ze_kernel_handle_t,
    groups: *const Groups,
    events: Events,
) -> Answer {
    let list = resolve::<CommandList>(list)?;
    let kernel = resolve::<Kernel>(kernel)?;
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let groups = dimensions(input(groups)?);
        check_cooperative(groups)?;
        events.append(&list, Launch::capture(&kernel, groups)?, Order::Loose)
    }
}

/// `zeCommandListAppendLaunchKernelWithArguments`: sets the group size and every argument, then launches.
///
/// # Safety
/// As for [`append`]; `values` must refer to as many pointers as the kernel has arguments, each one null or valid for
/// the argument's type. For local memory it is the size itself, as a `size_t` that the pointer refers to.
pub unsafe fn append_with_arguments(
    list: sys::ze_command_list_handle_t,
    kernel: sys::ze_kernel_handle_t,
    groups: Groups,
    group: Group,
    values: *const *const c_void,
    next: *const c_void,
    events: Events,
) -> Answer {
    let list = resolve::<CommandList>(list)?;
    let kernel = resolve::<Kernel>(kernel)?;
    kernel.set_group([group.x, group.y, group.z])?;
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        kernel.set_arguments(values)?;
        let groups = dimensions(&groups);
        check_wishes(next, groups)?;
        events.append(&list, Launch::capture(&kernel, groups)?, Order::Loose)
    }
}

/// What a launch asks for beyond its sizes: cooperation is the only wish that is known.
///
/// # Safety
/// Each link must be null or valid.
unsafe fn check_wishes(next: *const c_void, groups: [u32; 3]) -> Answer {
    /// `ze_command_list_append_launch_kernel_param_cooperative_desc_t`.
    #[repr(C)]
    struct Cooperative {
        stype: sys::ze_structure_type_t,
        next: *const c_void,
        cooperative: sys::ze_bool_t,
    }
    // SAFETY: the caller vouches for the chain; the stype tells the structure.
    for (stype, link) in unsafe { chain(next) } {
        ensure(
            stype == sys_type::LAUNCH_COOPERATIVE_DESC,
            sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
        )?;
        // SAFETY: as above.
        if unsafe { input(link.cast::<Cooperative>()) }?.cooperative != 0 {
            check_cooperative(groups)?;
        }
    }
    Ok(())
}

/// Whether so many groups are sure to run at the same time.
fn check_cooperative(groups: [u32; 3]) -> Answer {
    let total = groups
        .iter()
        .map(|&count| u128::from(count))
        .product::<u128>();
    if total > u128::from(crate::kernel::COOPERATIVE_GROUPS) {
        describe("more groups than zeKernelSuggestMaxCooperativeGroupCount allows");
        return Err(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    Ok(())
}
