//! Whether a list's device accesses the memory of a command: without peer access, not that of other devices.

use level_zero_sys as sys;

use super::list::CommandList;
use crate::abi::result::{ZeResult, described};
use crate::abi::strictness::is_strict;
use crate::check;
use crate::device;
use crate::engine::Operation;

impl CommandList {
    /// Checks all memory that is known when an operation is appended. A kernel may access other memory through pointers in
    /// memory.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for memory that belongs to a device without peer access, and the errors of
    /// [`Operation::pin`].
    pub(super) fn check_access(&self, operation: &impl Operation) -> ZeResult {
        if check::is_on() && is_strict() {
            self.check_context(operation)?;
        }
        if self.device.peer_access {
            return Ok(());
        }
        for pin in operation.pin()? {
            let Some(allocation) = pin.allocation() else {
                continue;
            };
            // Host memory belongs to no device.
            let owner = device::find(allocation.request.device as sys::ze_device_handle_t).ok();
            let Some(owner) = owner.filter(|owner| !self.device.can_access(owner)) else {
                continue;
            };
            let kind = match allocation.request.kind {
                sys::ZE_MEMORY_TYPE_SHARED => "shared",
                _ => "device",
            };
            let (name, owner) = (self.device.name(), owner.name());
            return Err(described(
                sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
                format_args!("{name} has no access to {kind} memory of {owner}"),
            ));
        }
        Ok(())
    }

    /// Tells the checker of memory that belongs to another context than the list: by the letter an error, while Intel's driver
    /// allows it and MPI relies on it.
    fn check_context(&self, operation: &impl Operation) -> ZeResult {
        let (own, other) = (self.context.id, operation.uses().context);
        for pin in operation.pin()? {
            let allocation = pin.allocation();
            let Some((owner, watch)) =
                allocation.and_then(|it| Some((it.request.context, it.watched()?)))
            else {
                continue;
            };
            if owner != own && Some(owner) != other {
                check::foreign_context(watch, own);
            }
        }
        Ok(())
    }
}
