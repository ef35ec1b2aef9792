//! Changes of the launches of mutable lists.

use std::any::Any;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::{
    self, ze_mutable_commands_exp_desc_t as Changes,
    ze_mutable_global_offset_exp_desc_t as GlobalOffset,
    ze_mutable_group_count_exp_desc_t as GroupCount, ze_mutable_group_size_exp_desc_t as GroupSize,
    ze_mutable_kernel_argument_exp_desc_t as KernelArgument,
};

use super::Launch;
use super::append::dimensions;
use super::captured::range;
use crate::abi::arguments::{Link, input_array};
use crate::abi::entry::{In, check};
use crate::abi::result::{ZeResult, ensure};
use crate::command_list::CommandList;
use crate::engine::Operation;
use crate::kernel::Kernel;
use crate::opencl::Range;

/// `zeCommandListUpdateMutableCommandsExp`, in the order of the chain.
pub fn update(list: Arc<CommandList>, desc: In<'_, Changes>) -> ZeResult {
    ensure(desc.flags == 0, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION)?;
    // SAFETY: the descriptor is valid, with all that it refers to.
    desc.chain()
        .try_for_each(|link| unsafe { change(&list, link) })
}

/// Makes one change.
///
/// # Safety
/// The structure's pointers must each be null or valid.
unsafe fn change(list: &CommandList, link: Link<'_>) -> ZeResult {
    if let Some(it) = link.input::<KernelArgument>() {
        let flags = extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS;
        list.change(it.commandId, flags, |operation| {
            // SAFETY: the caller vouches for the value.
            unsafe { launch(operation)?.with_argument(it) }
        })
    } else if let Some(it) = link.input::<GroupCount>() {
        // SAFETY: the caller vouches for the pointer.
        let groups = dimensions(unsafe { check(it.pGroupCount) }?);
        let flags = extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT;
        list.change(it.commandId, flags, |operation| {
            launch(operation)?.with_groups(groups)
        })
    } else if let Some(it) = link.input::<GroupSize>() {
        let group = [it.groupSizeX, it.groupSizeY, it.groupSizeZ];
        let flags = extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE;
        list.change(it.commandId, flags, |operation| {
            launch(operation)?.with_group_size(group)
        })
    } else if let Some(it) = link.input::<GlobalOffset>() {
        let offset = [it.offsetX, it.offsetY, it.offsetZ].map(|offset| offset as usize);
        let flags = extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET;
        list.change(it.commandId, flags, |operation| {
            let launch = launch(operation)?;
            launch.with_range(launch.groups(), launch.range.group, offset)
        })
    } else {
        Err(sys::ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION)
    }
}

/// `zeCommandListUpdateMutableCommandKernelsExp`: each command launches another kernel, as that is set up now.
///
/// # Safety
/// `ids` and `kernels` must be null or have `count` entries.
pub unsafe fn update_kernels(
    list: Arc<CommandList>,
    count: u32,
    ids: *mut u64,
    kernels: *mut sys::ze_kernel_handle_t,
) -> ZeResult {
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    // SAFETY: the caller vouches for the arrays.
    let (ids, kernels) = unsafe {
        (
            input_array(ids.cast_const(), count, null)?,
            check::<_, Vec<Arc<Kernel>>>((count, kernels))?,
        )
    };
    let flags = extensions::ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION;
    for (id, kernel) in ids.iter().zip(kernels) {
        list.change(*id, flags, |operation| {
            launch(operation)?.with_kernel(&kernel)
        })?;
    }
    Ok(())
}

/// The operation as a launch; others, such as indirect ones, cannot be changed.
fn launch(operation: &dyn Operation) -> ZeResult<&Launch> {
    let operation: &dyn Any = operation;
    let launch = operation.downcast_ref();
    launch.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

impl Launch {
    /// Its number of groups.
    fn groups(&self) -> [u32; 3] {
        let Range { items, group, .. } = self.range;
        let mut groups = [0; 3];
        for ((groups, items), group) in groups.iter_mut().zip(items).zip(group) {
            *groups = u32::try_from(items / group).unwrap_or(u32::MAX);
        }
        groups
    }

    /// The same launch over another range.
    fn with_range(
        &self,
        groups: [u32; 3],
        group: [usize; 3],
        offset: [usize; 3],
    ) -> ZeResult<Self> {
        let range = range(groups, group, offset)?;
        self.changed(Arc::clone(&self.arguments), range)
    }

    fn with_group_size(&self, group: [u32; 3]) -> ZeResult<Self> {
        self.source()?.check_group(group)?;
        let group = group.map(|size| size as usize);
        self.with_range(self.groups(), group, self.range.offset)
    }

    /// # Safety
    /// The value must be null or refer to as many bytes as the structure says.
    unsafe fn with_argument(&self, change: &KernelArgument) -> ZeResult<Self> {
        let (kernel, mut arguments) = (self.source()?, (*self.arguments).clone());
        let (index, size) = (change.argIndex as usize, Some(change.argSize));
        // SAFETY: the caller vouches for the value.
        unsafe { arguments.set(&kernel.info, index, size, change.pArgValue) }?;
        self.changed(Arc::new(arguments), self.range)
    }

    fn with_kernel(&self, kernel: &Arc<Kernel>) -> ZeResult<Self> {
        let (arguments, group, offset) = kernel.launch_state();
        let group = group.map(|size| size as usize);
        Self::new(kernel, arguments, range(self.groups(), group, offset)?)
    }
}
