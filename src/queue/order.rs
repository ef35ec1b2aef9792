//! Order across queues and contexts: waiting for others' events, and signalling them.

use level_zero_sys as sys;

use super::RawQueue;
use crate::error::Result;
use crate::event::Event;

impl RawQueue {
    /// Lets everything that is submitted from here on come after `wait_list`, events of any queue, and tells when all of
    /// that and all that was submitted before is done.
    ///
    /// Events of this queue's context are waited for by the device; of another, by a host task.
    ///
    /// ```
    /// # use zeusm::{Context, DeviceMemory, Queue, Runtime};
    /// # let device = Runtime::get()?.default_device()?;
    /// # let context = Context::new(device.driver())?;
    /// let (first, second) = (Queue::new(&context, &device)?, Queue::new(&context, &device)?);
    /// let memory = DeviceMemory::new(&context, &device, 64)?;
    /// let filled = first.fill_async(memory, 3)?;
    /// second.barrier(&[filled.event().clone()])?;
    /// // What `second` does from here on finds the memory filled.
    /// # second.wait()?;
    /// # Ok::<(), zeusm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with Level Zero's answer.
    pub fn barrier(&self, wait_list: &[Event]) -> Result<Event> {
        let (mut near, far): (Vec<_>, Vec<_>) = wait_list
            .iter()
            .filter(|event| !event.is_inherited())
            .cloned()
            .partition(|event| event.context() == self.context());
        if !far.is_empty() {
            near.push(self.host_task(move || far.iter().for_each(|event| _ = event.drain()))?);
        }
        self.submit(&near, |list, signal, count, waits| {
            // SAFETY: `submit` vouches for the handles.
            unsafe {
                call!(
                    self.library(),
                    zeCommandListAppendBarrier(list, signal, count, waits)
                )
            }
        })
    }

    /// Resets somebody else's event now, and signals it once everything that was submitted so far is done. The answer
    /// is complete when that has happened.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with Level Zero's answer.
    ///
    /// # Safety
    /// `event` must be an event of this queue's context that nobody uses yet, and stay valid until the answer is
    /// complete ([`keep`](Self::keep) holds what owns it).
    pub unsafe fn signal_raw(&self, event: sys::ze_event_handle_t) -> Result<Event> {
        // SAFETY: the caller vouches for the event.
        unsafe { call!(self.library(), zeEventHostReset(event)) }?;
        self.submit(&[], |list, signal, count, waits| {
            // SAFETY: the caller vouches for `event`, `submit` for the other handles; the second barrier waits for the
            // first as for everything before it in the list.
            unsafe {
                call!(
                    self.library(),
                    zeCommandListAppendBarrier(list, event, count, waits)
                )?;
                call!(
                    self.library(),
                    zeCommandListAppendBarrier(list, signal, 0, std::ptr::null_mut())
                )
            }
        })
    }
}
