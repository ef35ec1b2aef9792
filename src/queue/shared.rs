//! Signals of events that other processes have opened, and those of other processes.

use std::mem;
use std::slice;
use std::sync::Arc;

use super::command_list::{NO_WAITS, append_barrier};
use super::raw::RawQueue;
use crate::error::Result;
use crate::event::{Event, Shared};

impl RawQueue {
    /// Signals an event of this queue's context that other processes may have opened, after `event` and all operations submitted
    /// so far. If `event` fails, or the submission, so does the shared one.
    ///
    /// # Errors
    /// As [`depends_on`](Self::depends_on).
    pub(crate) fn signal_shared(&self, event: &Event, shared: Arc<dyn Shared>) -> Result<()> {
        let mut unsignalled = Unsignalled(Some(Arc::clone(&shared)));
        if event.follows_others() {
            // A device signals in any case, so the host has to see first whether the other process has failed. Operations that
            // are submitted later do not wait for the task.
            let event = event.clone();
            self.try_host_task(move || {
                event.drain()?;
                event.check_submission()?;
                unsignalled.0.take().map_or(Ok(()), |it| it.signal())
            })?;
            return Ok(());
        }
        let library = self.library();
        let dependent = self.depends_on(slice::from_ref(event))?;
        let signalled = dependent.submit(move |list, signal, count, waits| {
            // SAFETY: the event lives as long as `shared`, and `submit` passes valid handles. The second barrier waits for the
            // first, as for all operations before it in the list.
            unsignalled.0.take().map_or(Ok(()), |shared| unsafe {
                append_barrier(library, list, shared.done(), (count, waits))
                    .inspect_err(|_| shared.fail())?;
                append_barrier(library, list, signal, NO_WAITS)
                    // The device signals it at some time, and nothing says when.
                    .inspect_err(|_| mem::forget(shared))
            })
        })?;
        self.retain(&signalled, shared);
        Ok(())
    }

    /// The event of another process's operation, for the wait lists of this queue and of others.
    pub(crate) fn opened(&self, event: Arc<dyn Shared>) -> Result<Event> {
        Ok(Event::opened(&self.list()?.events, event))
    }
}

/// A shared event that nothing will signal, and which fails when this is dropped: when the operation that was to signal it is not
/// submitted.
struct Unsignalled(Option<Arc<dyn Shared>>);

impl Drop for Unsignalled {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.fail();
        }
    }
}
