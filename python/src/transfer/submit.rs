//! The submission of a copy, also between contexts or devices, where it is direct or staged.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::slice;

use zeusm::{Completion, Error, Event, Queue};

/// The addresses of `size` bytes.
pub(crate) fn range(first: usize, size: usize) -> Range<usize> {
    first..first.saturating_add(size)
}

/// The pointer of an address.
pub(crate) fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}

/// Submits a copy from the context and device of one queue to those of another. It is ordered after earlier operations and
/// before later operations of both queues. If the queues differ and no direct copy is possible, or if it has to wait for the host, a host task
/// copies, through staging memory if necessary; if it fails, so does the event.
///
/// # Safety
/// Both ranges must be valid until the event is complete, each USM of its queue's context or host memory.
pub(crate) unsafe fn submit_copy(
    to: &Queue,
    destination: usize,
    from: &Queue,
    source: usize,
    size: usize,
    completion: Completion,
) -> Result<Option<Event>, Error> {
    if to == from {
        // SAFETY: the caller guarantees the validity of the ranges.
        return unsafe { to.copy_raw(pointer(destination), pointer(source), size, completion) };
    }
    let earlier = if from.is_idle() {
        Vec::new()
    } else {
        vec![from.barrier(&[])?]
    };
    let before = to.barrier(&earlier)?;
    if size == 0 {
        return Ok(None);
    }
    // A deferred copy could not be replaced by a staged one if the driver turns out not to support it.
    let direct = if before.is_submitted() {
        // An operation that has failed counts as submitted, too.
        before.check_submission()?;
        // SAFETY: as above.
        unsafe { to.peer_copy_async_raw(pointer(destination), from, pointer(source), size) }?
    } else {
        None
    };
    let done = match &direct {
        Some(done) => done.clone(),
        None => {
            // The host task uses queues of its own, as operations of the two queues wait for its event.
            let into = Queue::new(to.context(), to.device())?;
            let out_of = Queue::new(from.context(), from.device())?;
            to.try_host_task(move || {
                before.drain()?;
                before.check_submission()?;
                let (destination, source) = (pointer(destination), pointer(source));
                // SAFETY: as above.
                unsafe { into.peer_copy_raw(destination, &out_of, source, size) }
            })?
        }
    };
    let after = slice::from_ref(&done);
    let ends = from.barrier(after).and_then(|_| to.barrier(after));
    // Without an event that later waits could use, this waits now, as the copy accesses the caller's memory.
    let end = ends.inspect_err(|_| _ = to.finish(&done, "copy", size))?;
    // Only a copy that the device executes has timestamps.
    Ok(Some(direct.unwrap_or(end)))
}
