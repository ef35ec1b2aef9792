//! The entry points that append a launch with sizes that the host passes.

use std::ffi::c_void;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::Launch;
use crate::abi::entry::Chain;
use crate::abi::result::{ZeResult, described};
use crate::command_list::{Events, KernelList};
use crate::engine::Order;
use crate::kernel::Kernel;

/// How many groups, as the API gives it.
pub type Groups = sys::ze_group_count_t;

type Cooperative = extensions::ze_command_list_append_launch_kernel_param_cooperative_desc_t;

/// The three dimensions of a group count.
pub fn dimensions(groups: &Groups) -> [u32; 3] {
    [groups.groupCountX, groups.groupCountY, groups.groupCountZ]
}

/// `zeCommandListAppendLaunchKernel`.
pub fn append(
    KernelList(list): KernelList,
    kernel: Arc<Kernel>,
    groups: &Groups,
    events: Events,
) -> ZeResult {
    let launch = Launch::capture(&kernel, dimensions(groups))?;
    events.append(&list, launch, Order::Unordered)
}

/// `zeCommandListAppendLaunchKernelWithParameters`, which are a chain of extensions.
pub fn append_with_parameters(
    list: KernelList,
    kernel: Arc<Kernel>,
    groups: &Groups,
    next: Chain,
    events: Events,
) -> ZeResult {
    check_extensions(&next, groups)?;
    append(list, kernel, groups, events)
}

/// `zeCommandListAppendLaunchCooperativeKernel`: all groups are guaranteed to run concurrently.
pub fn append_cooperative(
    list: KernelList,
    kernel: Arc<Kernel>,
    groups: &Groups,
    events: Events,
) -> ZeResult {
    check_cooperative(groups)?;
    append(list, kernel, groups, events)
}

/// `zeCommandListAppendLaunchKernelWithArguments`: sets the group size and every argument, then launches.
///
/// # Safety
/// `values` must refer to as many pointers as the kernel has arguments, each one null or valid for
/// the argument's type. For local memory it is the size itself, as a `size_t` that the pointer refers to.
pub unsafe fn append_with_arguments(
    list: KernelList,
    kernel: Arc<Kernel>,
    groups: Groups,
    group: extensions::ze_group_size_t,
    values: *const *const c_void,
    next: Chain,
    events: Events,
) -> ZeResult {
    kernel.set_group([group.groupSizeX, group.groupSizeY, group.groupSizeZ])?;
    // SAFETY: the caller vouches for the values.
    unsafe { kernel.set_arguments(values) }?;
    append_with_parameters(list, kernel, &groups, next, events)
}

/// Checks the chain of a launch, of which only the cooperative descriptor is supported.
fn check_extensions(next: &Chain, groups: &Groups) -> ZeResult {
    for link in next.links() {
        let extension = link.input::<Cooperative>();
        let extension = extension.ok_or(sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)?;
        if extension.isCooperative != 0 {
            check_cooperative(groups)?;
        }
    }
    Ok(())
}

/// Checks that so many groups are guaranteed to run concurrently.
fn check_cooperative(groups: &Groups) -> ZeResult {
    let total = dimensions(groups)
        .iter()
        .map(|&count| u128::from(count))
        .product::<u128>();
    if total > u128::from(crate::kernel::COOPERATIVE_GROUPS) {
        let text = "more groups than zeKernelSuggestMaxCooperativeGroupCount allows";
        return Err(described(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT, text));
    }
    Ok(())
}
