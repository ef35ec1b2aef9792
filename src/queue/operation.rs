//! An operation in flight, with its operands.

use std::fmt;
use std::time::Duration;

use super::raw::RawQueue;
use crate::error::Result;
use crate::event::Event;

/// A submitted operation, which owns its operands until it is complete.
///
/// [`wait`](Self::wait) returns the operands. Dropping it does not cancel the operation: the queue retains the operands
/// until the operation is complete.
///
/// ```
/// # use zeusm::{Context, DeviceMemory, Queue, Runtime};
/// # let device = Runtime::get()?.default_device()?;
/// # let context = Context::new(device.driver())?;
/// # let queue = Queue::new(&context, &device)?;
/// let memory = DeviceMemory::new(&context, &device, 64)?;
/// let memory = queue.fill_async(memory, 3)?.wait()?;
/// let (_, bytes) = queue.read_async(memory, vec![0; 64])?.wait()?;
/// assert_eq!(bytes, [3; 64]);
/// # Ok::<(), zeusm::Error>(())
/// ```
pub struct Operation<T: Send + 'static> {
    /// `Some` until `wait` or `drop` takes it.
    operands: Option<T>,
    event: Event,
    queue: RawQueue,
}

impl<T: Send + 'static> Operation<T> {
    pub(super) fn new(queue: &RawQueue, event: Event, operands: T) -> Self {
        Self {
            operands: Some(operands),
            event,
            queue: queue.clone(),
        }
    }

    /// The event that completes with the operation.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Whether it is complete.
    ///
    /// # Errors
    /// [`Error::DeviceLost`](crate::Error::DeviceLost); [`Error::NotExecuted`](crate::Error::NotExecuted).
    pub fn is_complete(&self) -> Result<bool> {
        self.event.is_complete()
    }

    /// Waits until it is complete, and returns the operands.
    ///
    /// # Errors
    /// [`Error::DeviceLost`](crate::Error::DeviceLost), and the queue retains the operands;
    /// [`Error::NotExecuted`](crate::Error::NotExecuted), and the operands are dropped.
    pub fn wait(mut self) -> Result<T> {
        loop {
            if self.event.wait(None)?
                && let Some(operands) = self.operands.take()
            {
                return Ok(operands);
            }
        }
    }

    /// Waits with a timeout; returns the operands if it is complete, else the operation itself.
    ///
    /// # Errors
    /// [`Error::DeviceLost`](crate::Error::DeviceLost), and the queue retains the operands;
    /// [`Error::NotExecuted`](crate::Error::NotExecuted), and the operands are dropped.
    pub fn wait_timeout(self, timeout: Duration) -> Result<std::result::Result<T, Self>> {
        if self.event.wait(Some(timeout))? {
            self.wait().map(Ok)
        } else {
            Ok(Err(self))
        }
    }
}

impl<T: Send + 'static> Drop for Operation<T> {
    fn drop(&mut self) {
        if let Some(operands) = self.operands.take() {
            self.queue.retain(&self.event, operands);
        }
    }
}

/// Does not show the operands, as the device may be writing to them.
impl<T: Send + 'static> fmt::Debug for Operation<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Operation")
            .field("event", &self.event)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
