//! Memory that is freed in the order of SYCL queues: when the work is complete that was submitted to them before.

use std::any::Any;

use crate::in_flight::reclaim_later;
use crate::interpreter::detached;
use zeusm::sycl::{EventRef, QueueRef};
use zeusm::{Error, Event, Queue};

/// Drops `memory` when what was submitted to the queues is complete, at once if they are idle. A host task of `frees`, a queue for
/// nothing else, waits for them.
pub(crate) fn free_after(
    frees: &Queue,
    queues: impl IntoIterator<Item = QueueRef> + Send,
    memory: impl Any + Send,
) {
    // The GIL is released, as SYCL takes locks that a thread may hold which waits for a host task, and that may need the GIL.
    detached(|| {
        let mut busy: Vec<_> = queues.into_iter().collect();
        busy.retain(|queue| !queue.is_idle());
        if busy.is_empty() {
            return;
        }
        let waits: Vec<_> = busy
            .iter()
            .map(|queue| (queue.clone(), queue.barrier().ok()))
            .collect();
        match completion(frees, waits) {
            Ok(event) => {
                frees.retain(&event, memory);
                reclaim_later(frees);
            }
            // A failed wait is that of a lost device, which uses the memory no more.
            Err(_) => busy.iter().for_each(|queue| _ = queue.wait()),
        }
    });
}

/// The event of what waits for the barriers, or for the whole queue where there is none.
fn completion(frees: &Queue, waits: Vec<(QueueRef, Option<EventRef>)>) -> Result<Event, Error> {
    let task = frees.host_task(move || {
        for (queue, barrier) in &waits {
            let _ = match barrier {
                Some(barrier) => queue.wait_for(barrier).is_ok(),
                None => queue.wait().is_ok(),
            };
        }
    })?;
    frees.depends_on(&[task])?.barrier(&[])
}
