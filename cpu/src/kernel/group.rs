//! Group sizes and global offsets.

use std::sync::Arc;

use level_zero_sys as sys;

use super::state::Kernel;
use crate::abi::result::{ZeResult, ensure};
use crate::opencl::Runtime;
use crate::system::processor;

/// The number of groups that are guaranteed to run concurrently: OpenCL guarantees one.
pub const COOPERATIVE_GROUPS: u32 = 1;

/// `zeKernelSetGroupSize`, in work-items.
pub fn set_group_size(kernel: Arc<Kernel>, x: u32, y: u32, z: u32) -> ZeResult {
    kernel.set_group([x, y, z])
}

/// `zeKernelSetGlobalOffsetExp`, in work-items.
pub fn set_offset(kernel: Arc<Kernel>, x: u32, y: u32, z: u32) -> ZeResult {
    kernel.state().offset = [x, y, z].map(|offset| offset as usize);
    Ok(())
}

/// `zeKernelSuggestGroupSize`, for so many work-items in all. An empty range is no error, as SYCL asks for one before it
/// launches no groups.
pub fn suggest_group_size(
    kernel: Arc<Kernel>,
    width: u32,
    height: u32,
    depth: u32,
    x: &mut u32,
    y: &mut u32,
    z: &mut u32,
) -> ZeResult {
    [*x, *y, *z] = kernel.suggest([width, height, depth].map(|items| items.max(1)));
    Ok(())
}

/// `zeKernelSuggestMaxCooperativeGroupCount`: the groups that are guaranteed to run concurrently.
pub fn suggest_cooperative_groups(_: Arc<Kernel>, count: &mut u32) -> ZeResult {
    *count = COOPERATIVE_GROUPS;
    Ok(())
}

impl Kernel {
    /// Sets the work-items of a group.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION` for 0, for more than the device or the kernel allow, and for
    /// anything but the size that the kernel requires.
    pub fn set_group(&self, group: [u32; 3]) -> ZeResult {
        self.check_group(group)?;
        self.state().group = Some(group);
        Ok(())
    }

    /// Checks the work-items of a group.
    ///
    /// # Errors
    /// As for [`set_group`](Self::set_group).
    pub fn check_group(&self, group: [u32; 3]) -> ZeResult {
        let required = self
            .info
            .required_group_size
            .is_none_or(|required| required == group);
        ensure(
            required && self.supports(group),
            sys::ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION,
        )
    }

    /// Whether a group may have this size.
    fn supports(&self, group: [u32; 3]) -> bool {
        let most = Runtime::get().map_or([0; 3], |runtime| runtime.properties.max_item_sizes);
        let fits = group
            .iter()
            .zip(most)
            .all(|(&size, most)| size != 0 && size as usize <= most);
        let total = group.iter().map(|&size| u128::from(size)).product::<u128>();
        fits && total <= self.limits.max_group_size as u128
    }

    /// A group size that divides `items` and suits the device.
    fn suggest(&self, items: [u32; 3]) -> [u32; 3] {
        if let Some(required) = self.info.required_group_size {
            return required;
        }
        if let Some((suggested_for, group)) = self.state().suggested
            && suggested_for == items
        {
            return group;
        }
        let suggested = self
            .compiled
            .suggested_group(items.map(|items| items as usize));
        let suggested = suggested.map(|group| group.map(|size| u32::try_from(size).unwrap_or(0)));
        let divides = |group: &[u32; 3]| {
            items
                .iter()
                .zip(group)
                .all(|(items, size)| items.is_multiple_of(*size))
        };
        let group = suggested
            .filter(|group| self.supports(*group) && divides(group))
            .unwrap_or_else(|| self.divisor(items));
        self.state().suggested = Some((items, group));
        group
    }

    /// The largest divisor of the first dimension that fits and still leaves a few groups for each processor.
    fn divisor(&self, items: [u32; 3]) -> [u32; 3] {
        let [width, ..] = items;
        let share = (width as usize).div_ceil(4 * processor::count());
        let most = share.min(self.limits.max_group_size).max(1);
        let most = u32::try_from(most).unwrap_or(u32::MAX).min(width);
        let size = (1..=most)
            .rev()
            .find(|&size| width.is_multiple_of(size) && self.supports([size, 1, 1]));
        [size.unwrap_or(1), 1, 1]
    }
}
