//! Memory that is freed in the order of SYCL queues: when the work is complete that was submitted to them before. Allocations
//! that queues of other packages use are recorded with them until they are freed.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;

use crate::in_flight::reclaim_later;
use crate::interpreter::detached;
use zeusm::sycl::{EventRef, QueueRef};
use zeusm::usm::Allocation;
use zeusm::{Error, Event, Queue};
use zeusm_process::{Local, Mutex};

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

/// The queues that use an allocation, and the queue for its free.
struct Recorded {
    frees: Queue,
    queues: Vec<QueueRef>,
}

/// By the addresses of the allocations. A fork's child has none, and no work on the memory that it inherits.
static RECORDED: Local<Mutex<FxHashMap<usize, Recorded>>> = Local::new();
/// Whether there ever was one. A thread that frees memory got it from the thread that recorded its queue.
static ANY: AtomicBool = AtomicBool::new(false);

/// Has the allocation freed after what will have been submitted to the queue by then.
pub(crate) fn record(allocation: &Allocation, frees: &Queue, queue: QueueRef) {
    ANY.store(true, Ordering::Relaxed);
    let mut recorded = RECORDED.get_or_default().lock();
    let own = recorded
        .entry(allocation.as_ptr().addr())
        .or_insert_with(|| Recorded {
            frees: frees.clone(),
            queues: Vec::new(),
        });
    if !own.queues.contains(&queue) {
        own.queues.push(queue);
    }
}

/// Frees an allocation, after the work of the queues that were recorded for it.
#[inline]
pub(crate) fn free(allocation: Allocation) {
    if ANY.load(Ordering::Relaxed) {
        free_recorded(allocation);
    }
}

#[cold]
fn free_recorded(allocation: Allocation) {
    let found = RECORDED
        .get()
        .and_then(|recorded| recorded.lock().remove(&allocation.as_ptr().addr()));
    if let Some(Recorded { frees, queues }) = found {
        free_after(&frees, queues, allocation);
    }
}
