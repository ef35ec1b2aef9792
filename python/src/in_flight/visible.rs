//! Operations that are being submitted, which other threads have to see where they use memory that migrates; and the operands that
//! are retained until an operation is complete.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;

use super::reclaimer::reclaim_later;
use super::table::InFlight;
use crate::interpreter::{Attached, FREE_THREADED, detach};
use crate::resolve::ContextDevice;
use zeusm::usm::UsmKind;
use zeusm::{Error, Event, without_drops};

/// An operation that is being submitted, or waited for by a blocking call. If the driver migrates memory that it uses, it is
/// in the table from before the GIL is released until this is dropped: a host access to other bytes of the allocation would
/// discard what the device writes.
pub(crate) struct Visible<'a> {
    /// The owner of the operation's queue.
    pub(crate) context_device: &'a Arc<ContextDevice>,
    /// The owner of the source's memory, which may be in another context.
    from: &'a Arc<ContextDevice>,
    pub(crate) touched: &'a [Range<usize>],
    entry: Option<InFlight>,
    /// The event with which the operation is complete, once it is submitted; `None` if it is complete already.
    pub(crate) event: Option<Event>,
}

impl<'a> Visible<'a> {
    /// An operation on the queue of `context_device` that uses the `touched` addresses, of its context and of that of `from`.
    pub(crate) fn new(
        context_device: &'a Arc<ContextDevice>,
        from: &'a Arc<ContextDevice>,
        touched: &'a [Range<usize>],
    ) -> Self {
        Self {
            context_device,
            from,
            touched,
            entry: None,
            event: None,
        }
    }

    /// Calls `submit` without the GIL, which sets the event. Other threads that need it wait until `submit` returns, and not
    /// until this thread has the GIL again: when the interpreter exits, it never gets it.
    pub(crate) fn detach<T: Send>(
        &mut self,
        py: Python<'_>,
        submit: impl FnOnce(&mut Option<Event>) -> T + Send,
    ) -> T {
        self.enter(None);
        detach(py, || {
            let answer = without_drops(|| submit(&mut self.event));
            match (&self.entry, &self.event) {
                (Some(entry), Some(event)) => entry.set(Some(event)),
                _ => self.entry = None,
            }
            self.drop_complete();
            answer
        })
    }

    /// Calls `submit` with the GIL, for an operation that may complete within the call, which then returns no event.
    /// It must not wait for operations before it.
    pub(crate) fn submit_small(
        &mut self,
        submit: impl FnOnce() -> Result<Option<Event>, Error>,
    ) -> Result<(), Error> {
        if FREE_THREADED {
            self.enter(None);
        }
        self.event = without_drops(submit)?;
        match self.event.clone() {
            Some(event) => self.enter(Some(&event)),
            None => self.entry = None,
        }
        self.drop_complete();
        Ok(())
    }

    /// Drops the operands of complete operations, which a submission does not: their drop needs the GIL, and may run Python
    /// code that accesses the same memory, or that acquires a lock whose owner waits for the submission. A peer copy submits to
    /// both queues.
    fn drop_complete(&self) {
        let peer = Some(self.from).filter(|from| !Arc::ptr_eq(from, self.context_device));
        for owner in iter::once(self.context_device).chain(peer) {
            if let Ok(queue) = owner.queue() {
                queue.drop_complete();
            }
        }
    }

    fn enter(&mut self, event: Option<&Event>) {
        if let Some(entry) = &self.entry {
            entry.set(event);
        } else if self.migrates() {
            let touched = self.touched.to_vec();
            self.entry = Some(InFlight::new(self.context_device, event, touched));
        }
    }

    /// Whether the driver migrates any of the memory.
    fn migrates(&self) -> bool {
        let driver = self.context_device.device().driver();
        let moves = |owner: &Arc<ContextDevice>, first| {
            let found = owner.context().pointer_attributes(first);
            found.is_ok_and(|found| {
                let device = found.device.filter(|_| found.kind == UsmKind::Shared);
                device.is_some_and(|device| device.migrates_shared_memory())
            })
        };
        let is_discrete = driver
            .devices()
            .is_ok_and(|all| all.iter().any(|device| device.migrates_shared_memory()));
        is_discrete
            && self.touched.iter().any(|range| {
                moves(self.context_device, range.start) || moves(self.from, range.start)
            })
    }
}

/// Retains `operands` until an operation on the queue of `context_device` is complete, and enters it in the table until
/// then; returns them if it is complete already. The caller must not hold the GIL.
///
/// # Errors
/// [`Error::Call`] when the queue cannot be made; no operation is in flight then.
pub(crate) fn retain<T: Send + 'static>(
    context_device: &Arc<ContextDevice>,
    event: &Event,
    touched: Vec<Range<usize>>,
    operands: T,
) -> Result<Option<T>, Error> {
    if event.is_over() {
        return Ok(Some(operands));
    }
    let queue = context_device.queue()?;
    let entry = InFlight::new(context_device, Some(event), touched);
    queue.retain(event, (entry, Attached::new(operands)));
    reclaim_later(queue);
    Ok(None)
}
