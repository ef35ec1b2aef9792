//! Order across queues and contexts: wait lists, barriers, and signals of foreign events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys as sys;

use super::command_list::{NO_WAITS, append_barrier};
use super::raw::RawQueue;
use super::submission::Operand;
use crate::error::Result;
use crate::event::Event;

impl RawQueue {
    /// A handle of this queue whose operations also wait for the events of a wait list, which may belong to any queue. If one
    /// of the events fails, the operations of the handle are not executed.
    ///
    /// The device waits for events of this queue's context. For events of other contexts a host task waits, which this submits:
    /// later host tasks of the queue, and its operations that wait for the host, also those of other handles, run after it.
    ///
    /// ```
    /// # use zeusm::{Context, DeviceMemory, Queue, Runtime};
    /// # let device = Runtime::get()?.default_device()?;
    /// # let context = Context::new(device.driver())?;
    /// let (first, second) = (Queue::new(&context, &device)?, Queue::new(&context, &device)?);
    /// let memory = DeviceMemory::new(&context, &device, 64)?;
    /// let filled = first.fill_async(memory, 3)?;
    /// let dependent = second.depends_on(&[filled.event().clone()])?;
    /// let other = DeviceMemory::new(&context, &device, 64)?;
    /// dependent.fill_async(other, 4)?.wait()?; // After the first fill.
    /// # assert!(filled.is_complete()?);
    /// # Ok::<(), zeusm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotExecuted`](crate::Error::NotExecuted) when an operation of the wait list has failed,
    /// [`Error::NoThread`](crate::Error::NoThread) when the wait needs the host and no thread can be started,
    /// [`Error::Call`](crate::Error::Call) with Level Zero's result; [`Error::DeviceLost`](crate::Error::DeviceLost) for the
    /// device of an event.
    pub fn depends_on(&self, wait_list: &[Event]) -> Result<Self> {
        let (local, foreign): (Vec<_>, Vec<_>) = wait_list
            .iter()
            .filter(|event| !event.is_inherited())
            .cloned()
            .partition(|event| event.context() == self.context());
        // Before anything is submitted, as unrelated operations behind it would fail, too.
        local
            .iter()
            .chain(&foreign)
            .try_for_each(|event| event.check_reachable(self.device()))?;
        let mut dependent = self.clone();
        dependent.wait_list.extend(local);
        if !foreign.is_empty() {
            let task = move || {
                Event::drain_all(&foreign)?;
                foreign.iter().try_for_each(Event::check_submission)
            };
            dependent.wait_list.push(self.try_host_task(task)?);
        }
        Ok(dependent)
    }

    /// Appends a barrier with a wait list: operations that are submitted later start after all events of the list, as far as
    /// these have not failed by then. Returns an event that completes after the wait list and all earlier operations.
    ///
    /// # Errors
    /// As [`depends_on`](Self::depends_on).
    pub fn barrier(&self, wait_list: &[Event]) -> Result<Event> {
        let library = self.library();
        self.depends_on(wait_list)?
            .submit(move |list, signal, count, waits| {
                // SAFETY: `submit` passes valid handles.
                unsafe { append_barrier(library, list, signal, (count, waits)) }
            })
    }

    /// Resets a foreign event, and signals it after all operations submitted so far. The returned event completes after the
    /// signal. `None`, without a change of the event, while operations of the queue wait for the host: work that waits for
    /// the event would occupy the engine before them.
    ///
    /// # Errors
    /// [`Error::Call`](crate::Error::Call) with Level Zero's result. `event` then has no pending signal.
    ///
    /// # Safety
    /// `event` must be an event of this queue's context without a pending signal or wait, and stay valid until the returned
    /// event is complete ([`retain`](Self::retain) can hold its owner).
    pub unsafe fn signal_raw(&self, event: sys::ze_event_handle_t) -> Result<Option<Event>> {
        let library = self.library();
        let pending = Arc::new(AtomicBool::new(false));
        let appended = Arc::clone(&pending);
        let target = Operand::new(event);
        let answer = self.submit_at_once(move |list, signal, count, waits| {
            let event = target.get();
            // SAFETY: the caller guarantees the validity of `event`, and `submit_at_once` passes valid handles. The second
            // barrier waits for the first, as for all operations before it in the list.
            unsafe {
                call!(library, zeEventHostReset(event))?;
                append_barrier(library, list, event, (count, waits))?;
                appended.store(true, Ordering::Relaxed);
                append_barrier(library, list, signal, NO_WAITS)
            }
        });
        if answer.is_err() && pending.load(Ordering::Relaxed) {
            // The caller may destroy the event after an error, and the first barrier will signal it.
            // SAFETY: the caller guarantees the validity of `event`.
            let _ = unsafe { call!(library, zeEventHostSynchronize(event, u64::MAX)) };
        }
        answer
    }
}
