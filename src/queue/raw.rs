//! A queue for pointers: its list in each process, and the errors of its operations.

use std::fmt;
use std::sync::Arc;

use level_zero_sys as sys;

use super::list::List;
use super::worker;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::event::Event;
use zeusm_process::Local;

/// An in-order queue of copies and fills by pointers. Cheap to clone; any thread may use it.
///
/// Dropping the last clone waits for the operations in flight.
///
/// Source: Level Zero specification, "Core programming guide", Command lists, immediate command lists.
#[derive(Clone)]
pub struct RawQueue {
    pub(super) inner: Arc<Inner>,
    /// The events that the operations of this handle wait for, beside those before them: [`depends_on`](Self::depends_on).
    pub(super) wait_list: Vec<Event>,
}

pub(super) struct Inner {
    context: Context,
    pub(super) device: Device,
    /// The command list of each process that uses the queue.
    pub(super) list: Local<Arc<List>>,
}

impl RawQueue {
    /// Makes a queue on the first of the device's command queue groups that supports compute and copy.
    ///
    /// # Errors
    /// [`Error::OtherDriver`] for a device of another driver than the context's; [`Error::CommandList`] with Level Zero's
    /// result.
    pub fn new(context: &Context, device: &Device) -> Result<Self> {
        context.check_driver_of(device)?;
        let queue = Self {
            inner: Arc::new(Inner {
                context: context.clone(),
                device: device.clone(),
                list: Local::new(),
            }),
            wait_list: Vec::new(),
        };
        queue.list()?;
        Ok(queue)
    }

    /// The context it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// The device that executes its operations.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Waits for an operation of this queue; the error describes the operation. The device does not access the operands any
    /// more when this returns, also in case of an error.
    ///
    /// # Errors
    /// [`Error::Operation`] with Level Zero's result.
    pub fn finish(&self, event: &Event, operation: &'static str, size: usize) -> Result<()> {
        self.drain(event)
            .map_err(|cause| self.failed(operation, size, cause))
    }

    /// As [`finish`](Self::finish), of an operation that may be complete already, and has no event then.
    pub(super) fn end(
        &self,
        event: Option<Event>,
        operation: &'static str,
        size: usize,
    ) -> Result<()> {
        event.map_or(Ok(()), |event| self.finish(&event, operation, size))
    }

    /// Waits until an operation of this queue is complete. When the wait fails, the error is returned only once the device
    /// cannot access the operands any more.
    pub(crate) fn drain(&self, event: &Event) -> Result<()> {
        match self.inner.list.get() {
            Some(list) => list.drain(event),
            // The operation is the parent's, and counts as complete.
            None => Ok(()),
        }
    }

    /// This process's command list, made on first use.
    pub(super) fn list(&self) -> Result<&Arc<List>> {
        let Inner {
            context,
            device,
            list,
        } = &*self.inner;
        list.get_or_try_init(|| {
            let made = List::new(context, device).map_err(|cause| Error::CommandList {
                device: device.to_string(),
                cause: Box::new(cause),
            });
            made.map(Arc::new)
        })
    }

    pub(super) fn failed(&self, operation: &'static str, size: usize, cause: Error) -> Error {
        let alive = match cause.result() {
            // Intel's driver reports these errors for a lost device.
            Some(
                sys::ZE_RESULT_ERROR_DEVICE_LOST
                | sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
                | sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
            ) => self.inner.device.check_alive_after_error(),
            _ => self.inner.device.check_alive(),
        };
        let cause = match alive {
            Err(lost) if cause.result() != lost.result() => lost,
            _ => cause,
        };
        Error::Operation {
            operation,
            size,
            device: self.inner.device.to_string(),
            cause: Box::new(cause),
        }
    }

    pub(super) fn library(&self) -> &'static sys::Library {
        self.inner.context.library()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(list) = self.list.get() else {
            return;
        };
        if worker::is_task() && list.waits_for_host() {
            // The operations may wait for later tasks of this thread. The queue's own thread waits for them, after its tasks.
            let own = Arc::clone(list);
            let end = Box::new(move || own.end());
            if list.worker.send(end).is_ok() {
                return;
            }
        }
        list.end();
    }
}

/// Equal when they are clones of one queue.
impl PartialEq for RawQueue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for RawQueue {}

impl fmt::Debug for RawQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Queue")
            .field("device", &self.inner.device)
            .field("context", &self.inner.context)
            .finish_non_exhaustive()
    }
}
