//! The user's code that a queue calls: drops of operands, and host tasks.
#![allow(clippy::unwrap_used)]

#[path = "support/queues.rs"]
mod queues;

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::thread::panicking;
use std::time::{Duration, Instant};

use zeusm::{HostMemory, Queue, SharedMemory, UsmKind, without_drops};

use queues::{blocked, fill, setup, wait};

/// A value whose drop panics.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(panicking(), "on purpose");
    }
}

/// The submission drops the operands of a complete operation. If their panic unwound through it, the memory would be freed, and
/// filled after that.
#[test]
fn a_panic_in_the_drop_of_operands_frees_no_memory_in_flight() {
    let (context, device, queue) = setup();
    let other = Queue::new(&context, &device).unwrap();
    let (release, task) = blocked();
    let dependent = queue.depends_on(&[other.host_task(task).unwrap()]).unwrap();
    let done = queue.barrier(&[]).unwrap();
    wait(&done);
    let owner = Arc::new(());
    without_drops(|| queue.retain(&done, (Fragile, Arc::clone(&owner))));
    let memory = HostMemory::new(&context, &device, 4096).unwrap();
    let address = memory.as_ptr();
    let filled = catch_unwind(AssertUnwindSafe(|| dependent.fill_async(memory, 7)));
    assert_eq!(Arc::strong_count(&owner), 1, "the operands were dropped");
    let next = HostMemory::new(&context, &device, 4096).unwrap();
    assert_ne!(next.as_ptr(), address);
    release.send(()).unwrap();
    let memory = filled.unwrap().unwrap().wait().unwrap();
    assert_eq!(memory.as_slice().unwrap(), [7; 4096]);
}

#[test]
fn a_panic_in_the_drop_of_operands_of_a_complete_operation_ends_there() {
    let (_, _, queue) = setup();
    let done = queue.barrier(&[]).unwrap();
    wait(&done);
    let retained = catch_unwind(AssertUnwindSafe(|| queue.retain(&done, Fragile)));
    assert!(retained.is_ok());
    assert!(queue.is_reclaimed());
}

/// The payload of a task's panic is dropped on the thread that runs the queue's other tasks, and submits the operations after
/// them.
#[test]
fn a_panic_in_the_drop_of_a_panics_payload_ends_no_thread() {
    let (context, device, queue) = setup();
    let (release, task) = blocked();
    let failed = queue.host_task(move || {
        task();
        panic_any(Fragile);
    });
    let next = queue.host_task(|| ()).unwrap();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    let filled = fill(&queue.depends_on(&[next]).unwrap(), &memory, 7);
    release.send(()).unwrap();
    assert!(failed.unwrap().wait(None).is_err());
    assert!(filled.wait(Some(Duration::from_secs(60))).unwrap());
    assert_eq!(memory.as_slice().unwrap(), [7; 64]);
    wait(&queue.host_task(|| ()).unwrap());
}

/// The task's thread also submits the operation that waits for the task, for which the drop of the queue waits elsewhere.
#[test]
fn a_task_may_drop_the_last_clone_of_its_queue() {
    let (context, device, queue) = setup();
    let (release, task) = blocked();
    let owner = queue.clone();
    let first = queue.host_task(move || {
        task();
        drop(owner);
    });
    let memory = HostMemory::new(&context, &device, 64).unwrap();
    let dependent = queue.depends_on(&[first.unwrap()]).unwrap();
    let filled = dependent.fill_async(memory, 7).unwrap();
    let event = filled.event().clone();
    let pool = context.pool(&device, UsmKind::Host).unwrap();
    drop((filled, dependent, queue));
    assert_eq!(pool.statistics().used_count, 1, "retained");
    release.send(()).unwrap();
    assert!(event.wait(Some(Duration::from_secs(60))).unwrap());
    let begun = Instant::now();
    while pool.statistics().used_count > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}
