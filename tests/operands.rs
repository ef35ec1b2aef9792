//! The operands that a queue retains until its operations are complete, and the threads that drop them.
#![allow(clippy::unwrap_used)]

#[path = "support/queues.rs"]
mod queues;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use zeusm::{Queue, RawQueue, SharedMemory};

use queues::{blocked, fill, setup, wait};

/// A time in which a thread that does not wait has returned.
const A_WHILE: Duration = Duration::from_millis(100);
/// Shorter than the timeout of a wait for drops on other threads.
const SOON: Duration = Duration::from_secs(60);

/// Blocks where it is dropped, after a message.
struct BlocksInDrop(mpsc::Sender<()>, mpsc::Receiver<()>);

impl Drop for BlocksInDrop {
    fn drop(&mut self) {
        let _ = self.0.send(());
        let _ = self.1.recv();
    }
}

#[test]
fn a_host_task_may_wait_for_every_operation_that_was_submitted_before() {
    // A thread that submits also drops operands of complete operations, which may take long: in Python it acquires the GIL.
    let (context, device, queue) = setup();
    let other = Queue::new(&context, &device).unwrap();
    let memory = [(); 2].map(|()| SharedMemory::new(&context, &device, 64).unwrap());
    let (dropping, drops) = mpsc::channel();
    let (end_of_drop, released) = mpsc::channel();
    let (complete, task) = blocked();
    let retained = other.host_task(task).unwrap();
    queue.retain(&retained, BlocksInDrop(dropping, released));
    let (release, task) = blocked();
    let event = queue.host_task(task).unwrap();
    queue.barrier(&[event]).unwrap();
    drop(complete);
    wait(&retained);
    thread::scope(|scope| {
        scope.spawn(|| fill(&queue, &memory[0], 1));
        drops.recv().unwrap();
        let last = fill(&queue, &memory[1], 2);
        let (answer, answers) = mpsc::channel();
        let task = move || {
            let answered = last.wait(Some(Duration::from_secs(10)));
            answer.send(answered.unwrap()).unwrap();
        };
        queue.host_task(task).unwrap();
        drop(release);
        let in_time = answers.recv().unwrap();
        drop(end_of_drop);
        assert!(in_time);
    });
}

/// An operand which records that it was dropped.
struct Recorded(Arc<AtomicBool>);

impl Drop for Recorded {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn recorded() -> (Recorded, impl Fn() -> bool) {
    let dropped = Arc::new(AtomicBool::new(false));
    let is_dropped = Arc::clone(&dropped);
    (Recorded(dropped), move || is_dropped.load(Ordering::SeqCst))
}

#[test]
fn reclaiming_waits_for_a_drop_in_a_submission_of_another_thread() {
    // Both calls that submit drop the operands of complete operations.
    let submissions: [fn(&Queue, &SharedMemory); 2] = [
        |queue, memory| wait(&fill(queue, memory, 1)),
        |queue, _| {
            let (release, task) = blocked();
            let event = queue.host_task(task).unwrap();
            queue.retain(&event, ());
            drop(release);
        },
    ];
    for submit in submissions {
        let (context, device, queue) = setup();
        let memory = SharedMemory::new(&context, &device, 64).unwrap();
        let (dropping, drops) = mpsc::channel();
        let (end_of_drop, released) = mpsc::channel();
        let (release, task) = blocked();
        let event = queue.host_task(task).unwrap();
        queue.retain(&event, BlocksInDrop(dropping, released));
        drop(release);
        wait(&event);
        thread::scope(|scope| {
            scope.spawn(|| submit(&queue, &memory));
            drops.recv().unwrap();
            assert!(!queue.is_reclaimed());
            let returned = scope.spawn(|| queue.reclaim());
            thread::sleep(A_WHILE);
            let is_early = returned.is_finished();
            drop(end_of_drop);
            assert!(!is_early, "the operands were not dropped yet");
        });
    }
}

/// Those of an operation that was complete already were dropped at once.
#[test]
fn no_operands_are_dropped_in_a_call_without_drops() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    let event = fill(&queue, &memory, 1);
    wait(&event);
    let (operand, is_dropped) = recorded();
    zeusm::without_drops(|| queue.retain(&event, operand));
    assert!(!is_dropped());
    queue.drop_complete();
    assert!(is_dropped());
    // In arbitrary code that such a call calls, they are dropped.
    let (operand, is_dropped) = recorded();
    zeusm::without_drops(|| zeusm::with_drops(|| queue.retain(&event, operand)));
    assert!(is_dropped());
}

#[test]
fn a_drop_that_is_delayed_delays_no_other() {
    let (_context, _device, queue) = setup();
    let (dropping, drops) = mpsc::channel();
    let (end_of_drop, released) = mpsc::channel();
    let (operand, is_dropped) = recorded();
    let (release, task) = blocked();
    let event = queue.host_task(task).unwrap();
    queue.retain(&event, BlocksInDrop(dropping, released));
    queue.retain(&event, operand);
    drop(release);
    wait(&event);
    thread::scope(|scope| {
        scope.spawn(|| queue.reclaim());
        drops.recv().unwrap();
        scope.spawn(|| queue.reclaim());
        let begun = Instant::now();
        while !is_dropped() && begun.elapsed() < SOON {
            thread::yield_now();
        }
        let in_time = is_dropped();
        drop(end_of_drop);
        assert!(in_time);
    });
}

/// Waits for the drop of another queue's operand, and reclaims what that queue has.
struct Reclaims(Arc<Barrier>, Arc<Queue>);

impl Drop for Reclaims {
    fn drop(&mut self) {
        self.0.wait();
        self.1.reclaim();
    }
}

#[test]
fn drops_of_two_queues_do_not_wait_for_each_other() {
    let (context, device, _) = setup();
    let queues = [(); 2].map(|()| Arc::new(Queue::new(&context, &device).unwrap()));
    let both = Arc::new(Barrier::new(2));
    let begun = Instant::now();
    thread::scope(|scope| {
        for (own, other) in [(0, 1), (1, 0)] {
            let (queues, both) = (&queues, &both);
            scope.spawn(move || {
                let (release, task) = blocked();
                let event = queues[own].host_task(task).unwrap();
                let operand = Reclaims(Arc::clone(both), Arc::clone(&queues[other]));
                queues[own].retain(&event, operand);
                drop(release);
                wait(&event);
                queues[own].reclaim();
            });
        }
    });
    assert!(begun.elapsed() < SOON);
}

#[test]
fn operands_are_dropped_in_the_order_of_completion() {
    // Threads that submit one after the other may retain the operands in another order.
    let (context, device, queue) = setup();
    let memory = [(); 2].map(|()| SharedMemory::new(&context, &device, 64).unwrap());
    let mut releases = Vec::new();
    let fills = [0, 1].map(|turn| {
        let (release, task) = blocked();
        releases.push(release);
        queue.barrier(&[queue.host_task(task).unwrap()]).unwrap();
        fill(&queue, &memory[turn], 1)
    });
    let (second, second_is_dropped) = recorded();
    queue.retain(&fills[1], second);
    let (first, first_is_dropped) = recorded();
    queue.retain(&fills[0], first);
    releases.remove(0).send(()).unwrap();
    wait(&fills[0]);
    queue.reclaim();
    assert!(first_is_dropped() && !second_is_dropped());
    releases.remove(0).send(()).unwrap();
    wait(&fills[1]);
    queue.reclaim();
    assert!(second_is_dropped());
}

#[test]
fn operands_of_another_queue_delay_no_other() {
    let (_context, _device, queue) = setup();
    let (_, _, other) = setup();
    let (release, task) = blocked();
    let theirs = other.host_task(task).unwrap();
    let after = other.barrier(std::slice::from_ref(&theirs)).unwrap();
    let (of_other, other_is_dropped) = recorded();
    queue.retain(&after, of_other);
    let (go, task) = blocked();
    let own = queue.host_task(task).unwrap();
    let (operand, is_dropped) = recorded();
    queue.retain(&own, operand);
    drop(go);
    wait(&own);
    queue.reclaim();
    assert!(is_dropped() && !other_is_dropped());
    drop(release);
    wait(&after);
    queue.reclaim();
    assert!(other_is_dropped());
}

/// An operand with a slow drop, which reclaims, too.
struct SlowDrop {
    queue: RawQueue,
    begun: mpsc::Sender<()>,
    reclaimed_in: Arc<Mutex<Option<Duration>>>,
}

impl Drop for SlowDrop {
    fn drop(&mut self) {
        self.begun.send(()).unwrap();
        let before = Instant::now();
        self.queue.reclaim();
        let elapsed = before.elapsed();
        thread::sleep(Duration::from_millis(10));
        *self.reclaimed_in.lock().unwrap() = Some(elapsed);
    }
}

#[test]
fn reclaiming_waits_for_drops_on_other_threads_and_not_for_its_own() {
    let (_context, _device, queue) = setup();
    let (begun, dropping) = mpsc::channel();
    let reclaimed_in = Arc::new(Mutex::new(None));
    let (release, task) = blocked();
    let event = queue.host_task(task).unwrap();
    let operand = SlowDrop {
        queue: queue.deref().clone(),
        begun,
        reclaimed_in: Arc::clone(&reclaimed_in),
    };
    queue.retain(&event, operand);
    drop(release);
    wait(&event);
    thread::scope(|scope| {
        scope.spawn(|| queue.reclaim());
        dropping.recv().unwrap();
        queue.reclaim();
        assert!(reclaimed_in.lock().unwrap().is_some());
    });
    assert!(queue.is_reclaimed());
    assert!(reclaimed_in.lock().unwrap().unwrap() < SOON);
}
