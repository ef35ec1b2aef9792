//! An operation under way, and the memory it works on.

use std::fmt;
use std::time::Duration;

use super::RawQueue;
use crate::error::Result;
use crate::event::Event;

/// An operation that was submitted, with the operands it owns until it is done.
///
/// [`wait`](Self::wait) gives the operands back. Dropping it lets the operation finish by itself: the queue keeps the
/// operands until then.
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

    /// The event that says when it is done.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Whether it is done.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) when the device is lost.
    pub fn is_complete(&self) -> Result<bool> {
        self.event.is_complete()
    }

    /// Waits until it is done and gives the operands back.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) when the device is lost; the operands are then kept by the queue.
    pub fn wait(mut self) -> Result<T> {
        loop {
            if self.event.wait(None)?
                && let Some(operands) = self.operands.take()
            {
                return Ok(operands);
            }
        }
    }

    /// Waits for at most `timeout`; gives the operands back when it is done, and itself when it is not.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) when the device is lost; the operands are then kept by the queue.
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
            self.queue.keep(&self.event, operands);
        }
    }
}

/// The operands are not looked at: the device may be writing them.
impl<T: Send + 'static> fmt::Debug for Operation<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Operation")
            .field("event", &self.event)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
