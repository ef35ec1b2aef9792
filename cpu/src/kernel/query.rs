//! Queries about kernels.

use std::ffi::c_char;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::{
    ze_kernel_allocation_exp_properties_t as Allocation,
    ze_kernel_max_group_size_properties_ext_t as MaxGroupSize,
};
use level_zero_sys::ze_kernel_preferred_group_size_properties_t as PreferredGroupSize;

use super::state::Kernel;
use crate::abi::entry::{Bytes, Out, Room, check};
use crate::abi::result::{ZeResult, ensure};

/// `zeKernelGetProperties`.
pub fn properties(
    kernel: Arc<Kernel>,
    mut properties: Out<'_, sys::ze_kernel_properties_t>,
) -> ZeResult {
    let number = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let [x, y, z] = kernel.info.required_group_size.unwrap_or([0; 3]);
    let (size, count) = kernel
        .compiled
        .sub_groups([kernel.limits.max_group_size, 1, 1]);
    properties.numKernelArgs = number(kernel.info.arguments.len());
    properties.requiredGroupSizeX = x;
    properties.requiredGroupSizeY = y;
    properties.requiredGroupSizeZ = z;
    properties.requiredNumSubGroups = kernel.info.required_sub_groups.unwrap_or(0);
    properties.requiredSubgroupSize = kernel.info.required_sub_group_size.unwrap_or(0);
    properties.maxSubgroupSize = number(size);
    properties.maxNumSubgroups = number(count);
    properties.localMemSize = u32::try_from(kernel.limits.local_memory).unwrap_or(u32::MAX);
    properties.privateMemSize = u32::try_from(kernel.limits.private_memory).unwrap_or(u32::MAX);
    properties.spillMemSize = 0;
    // Kernels have no UUIDs.
    properties.uuid = sys::ze_kernel_uuid_t::default();
    if let Some(preferred) = properties.extension::<PreferredGroupSize>() {
        preferred.preferredMultiple = number(kernel.limits.preferred_multiple);
    }
    if let Some(most) = properties.extension::<MaxGroupSize>() {
        most.maxGroupSize = number(kernel.limits.max_group_size);
    }
    Ok(())
}

/// `zeKernelGetAllocationPropertiesExp`: the allocations of the arguments that are set. Kernels have no other ones.
pub fn allocations(kernel: Arc<Kernel>, properties: Room<'_, Allocation>) -> ZeResult {
    let found = kernel.launch_state().0.allocations();
    let places = properties.structures(found.len())?;
    for (mut properties, (index, pin)) in places.zip(found) {
        let Some(allocation) = pin.allocation() else {
            continue;
        };
        properties.base = allocation.bytes().start as u64;
        properties.size = allocation.request.size;
        properties.type_ = allocation.request.kind;
        properties.argIndex = index;
    }
    Ok(())
}

/// `zeKernelGetName`.
pub fn name(kernel: Arc<Kernel>, place: Bytes<'_>) -> ZeResult {
    place.write_text(&kernel.info.name)
}

/// `zeKernelGetSourceAttributes`: the attributes of the kernel, as OpenCL C writes them.
///
/// # Safety
/// `place` must be null or refer to a pointer to room for `*size` bytes.
pub unsafe fn source_attributes(
    kernel: Arc<Kernel>,
    size: &mut u32,
    place: Option<&mut *mut c_char>,
) -> ZeResult {
    let text = attributes(&kernel.info);
    let mut room = *size as usize;
    *size = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
    let Some(place) = place else {
        return Ok(());
    };
    ensure(!place.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    // SAFETY: the caller vouches for the room.
    unsafe { check::<_, Bytes>((&raw mut room, *place)) }?.write_text(&text)
}

fn attributes(info: &crate::spirv::Kernel) -> String {
    let triple =
        |name: &str, size: Option<[u32; 3]>| size.map(|[x, y, z]| format!("{name}({x},{y},{z})"));
    let sub_group = info
        .required_sub_group_size
        .map(|size| format!("intel_reqd_sub_group_size({size})"));
    let all = [
        triple("reqd_work_group_size", info.required_group_size),
        triple("work_group_size_hint", info.group_size_hint),
        sub_group,
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::attributes;
    use crate::spirv::Kernel;

    #[test]
    fn attributes_are_spelled_as_in_opencl_c() {
        assert_eq!(attributes(&Kernel::default()), "");
        let info = Kernel {
            required_group_size: Some([8, 4, 1]),
            required_sub_group_size: Some(16),
            ..Kernel::default()
        };
        assert_eq!(
            attributes(&info),
            "reqd_work_group_size(8,4,1) intel_reqd_sub_group_size(16)"
        );
    }
}
