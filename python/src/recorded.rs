//! Allocations that queues of other packages use: each is freed when the work is complete that was submitted to them before.

use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;

use crate::ordered::free_after;
use zeusm::Queue;
use zeusm::sycl::QueueRef;
use zeusm::usm::Allocation;
use zeusm_process::{Local, Mutex};

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
