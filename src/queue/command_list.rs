//! An immediate command list of the driver.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use level_zero_sys as sys;

use crate::call::{check, enumerate};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};

/// An immediate command list, which is destroyed when dropped. The owner ensures that it is idle then.
pub(super) struct CommandList {
    context: Context,
    handle: sys::ze_command_list_handle_t,
    /// Whether it is leaked instead.
    is_leaked: AtomicBool,
}

// SAFETY: the handle may be used from any thread; the lock of the queue's state orders the appends.
unsafe impl Send for CommandList {}
// SAFETY: as above.
unsafe impl Sync for CommandList {}

/// More than a new command list and its first commands need of the memory of a device.
const DEVICE_MEMORY: usize = 8 << 20;

impl CommandList {
    pub(super) fn new(context: &Context, device: &Device) -> Result<Self> {
        if !device.is_integrated() {
            check_memory(context, device)?;
        }
        let description = sys::ze_command_queue_desc_t {
            ordinal: engine(device)?,
            mode: sys::ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
            ..sys::structure()
        };
        let mut handle = ptr::null_mut();
        // SAFETY: context and device are alive; description and list outlive the call.
        unsafe {
            call!(
                context.library(),
                zeCommandListCreateImmediate(
                    context.handle(),
                    device.handle(),
                    &description,
                    &mut handle
                )
            )
        }?;
        Ok(Self {
            context: context.clone(),
            handle,
            is_leaked: AtomicBool::new(false),
        })
    }

    /// Leaks the list, in which a submission has failed: its destruction submits the commands again that Intel's driver has left
    /// in it, whose operands may be freed by then. The CPU runtime leaves none.
    pub(super) fn leak(&self) {
        let leaves_commands = !self.context.driver().is_cpu_runtime();
        self.is_leaked.store(leaves_commands, Ordering::Relaxed);
    }

    pub(super) fn handle(&self) -> sys::ze_command_list_handle_t {
        self.handle
    }

    /// Waits until all appended operations are complete or the timeout has expired; returns whether they are complete.
    /// Returns `false` if the driver lacks the function.
    pub(super) fn synchronize(&self, timeout: Duration) -> Result<bool> {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let Some(synchronize) = self.context.library().zeCommandListHostSynchronize else {
            return Ok(false);
        };
        // SAFETY: the list is alive.
        match unsafe { synchronize(self.handle, timeout) } {
            sys::ZE_RESULT_NOT_READY
            | sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
            | sys::ZE_RESULT_ERROR_UNINITIALIZED => Ok(false),
            result => check("zeCommandListHostSynchronize", result).map(|()| true),
        }
    }

    /// Waits until all appended operations are complete; an error if the driver lacks the function.
    pub(super) fn finish(&self) -> Result<()> {
        match self.synchronize(Duration::MAX) {
            Ok(false) => Err(Error::Call {
                function: "zeCommandListHostSynchronize",
                result: sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
            }),
            answer => answer.map(|_| ()),
        }
    }
}

impl Drop for CommandList {
    fn drop(&mut self) {
        if self.is_leaked.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: the list is idle, and this was its last owner.
        let _ = unsafe { call!(self.context.library(), zeCommandListDestroy(self.handle)) };
    }
}

/// Appends a barrier, which waits for a wait list and for all operations before it in the list.
///
/// # Safety
/// The handles must be valid, and of `library`.
pub(super) unsafe fn append_barrier(
    library: &sys::Library,
    list: sys::ze_command_list_handle_t,
    signal: sys::ze_event_handle_t,
    (count, waits): (u32, *mut sys::ze_event_handle_t),
) -> Result<()> {
    // SAFETY: as for this function.
    unsafe {
        call!(
            library,
            zeCommandListAppendBarrier(list, signal, count, waits)
        )
    }
}

/// No wait list.
pub(super) const NO_WAITS: (u32, *mut sys::ze_event_handle_t) = (0, ptr::null_mut());

/// Checks that the device has memory for a command list: Intel's driver crashes, or aborts the process, if some of its own
/// allocations succeed and a later one does not. Physical memory is returned at once, as opposed to freed USM, which the driver
/// keeps for reuse.
///
/// # Errors
/// [`Error::Call`](crate::Error::Call) when the device is out of memory. Any other failure of the query is ignored.
fn check_memory(context: &Context, device: &Device) -> Result<()> {
    let mut description = sys::ze_physical_mem_desc_t {
        size: DEVICE_MEMORY,
        ..sys::structure()
    };
    let (library, mut memory) = (context.library(), ptr::null_mut());
    // SAFETY: context and device are alive; description and memory outlive the call.
    let made = unsafe {
        call!(
            library,
            zePhysicalMemCreate(
                context.handle(),
                device.handle(),
                &mut description,
                &mut memory
            )
        )
    };
    match made {
        // SAFETY: the memory was made above, and is mapped nowhere.
        Ok(()) => drop(unsafe { call!(library, zePhysicalMemDestroy(context.handle(), memory)) }),
        Err(error) if error.is_out_of_memory() => return Err(error),
        Err(_) => {}
    }
    Ok(())
}

/// The ordinal of the first command queue group that supports compute and copy; 0 when the device reports none.
fn engine(device: &Device) -> Result<u32> {
    let empty = sys::structure::<sys::ze_command_queue_group_properties_t>();
    let groups = enumerate(empty, |count, groups| {
        // SAFETY: the device is alive; `groups` is null or has room for `count`.
        unsafe {
            call!(
                device.driver().library(),
                zeDeviceGetCommandQueueGroupProperties(device.handle(), count, groups)
            )
        }
    })?;
    let wanted = sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE.0
        | sys::ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY.0;
    Ok(groups
        .iter()
        .zip(0u32..)
        .find(|(group, _)| group.flags & wanted == wanted)
        .map_or(0, |(_, ordinal)| ordinal))
}
