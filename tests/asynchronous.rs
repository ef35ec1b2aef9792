//! Order between queues, host tasks, hints and timing.
#![allow(clippy::unwrap_used)]

#[path = "support/queues.rs"]
mod queues;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use zeusm::{Completion, DeviceMemory, Error, Queue, SharedMemory, Timing, UsmKind, sys};

use queues::{blocked, fill, setup, wait};

/// Large enough to be still in flight when the call returns.
const LARGE: usize = 32 << 20;

#[test]
fn operations_wait_for_a_host_task() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    let (release, task) = blocked();
    let event = queue.host_task(task).unwrap();
    queue.barrier(std::slice::from_ref(&event)).unwrap();
    let filled = fill(&queue, &memory, 7);
    assert!(!filled.wait(Some(Duration::from_millis(30))).unwrap());
    assert!(!event.is_complete().unwrap() && !queue.is_reclaimed());
    release.send(()).unwrap();
    wait(&filled);
    assert!(event.is_complete().unwrap());
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 7));
    queue.reclaim();
    assert!(queue.is_reclaimed());
}

#[test]
fn host_tasks_of_a_queue_run_in_order() {
    let (_context, _device, queue) = setup();
    let order = Arc::new(Mutex::new(Vec::new()));
    let events: Vec<_> = (0..50)
        .map(|turn| {
            let order = Arc::clone(&order);
            queue
                .host_task(move || order.lock().unwrap().push(turn))
                .unwrap()
        })
        .collect();
    wait(&queue.barrier(&events).unwrap());
    assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>());
}

#[test]
fn a_host_task_that_panics_fails_and_does_not_affect_others() {
    let (_context, _device, queue) = setup();
    let error = queue.host_task(|| panic!("on purpose")).unwrap();
    let error = error.wait(None).unwrap_err();
    assert!(error.to_string().contains("has panicked"), "{error}");
    let ran = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&ran);
    wait(
        &queue
            .host_task(move || mark.store(true, Ordering::SeqCst))
            .unwrap(),
    );
    assert!(ran.load(Ordering::SeqCst));
}

#[test]
fn a_barrier_waits_for_another_queue() {
    let (context, device, first) = setup();
    let second = Queue::new(&context, &device).unwrap();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    let (release, task) = blocked();
    let event = first.host_task(task).unwrap();
    first.barrier(&[event]).unwrap();
    let ones = fill(&first, &memory, 1);
    second.barrier(&[ones]).unwrap();
    let twos = fill(&second, &memory, 2);
    assert!(!twos.wait(Some(Duration::from_millis(30))).unwrap());
    drop(release);
    wait(&twos);
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 2));
}

#[test]
fn a_barrier_waits_for_another_context() {
    let (_, _, first) = setup();
    let (context, device, second) = setup();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    let (release, task) = blocked();
    let event = first.host_task(task).unwrap();
    assert!(event.context() == first.context() && event.context() != second.context());
    second.barrier(&[event]).unwrap();
    let filled = fill(&second, &memory, 3);
    assert!(!filled.wait(Some(Duration::from_millis(30))).unwrap());
    drop(release);
    wait(&filled);
}

#[test]
fn a_barrier_without_a_wait_list_completes() {
    let (_context, _device, queue) = setup();
    wait(&queue.barrier(&[]).unwrap());
    let done = queue.barrier(&[]).unwrap();
    wait(&done);
    wait(&queue.barrier(&[done.clone(), done]).unwrap());
}

#[test]
fn queues_and_events_may_be_dropped_in_any_order_while_a_task_runs() {
    for order in 0..6 {
        let (context, device, queue) = setup();
        let memory = DeviceMemory::new(&context, &device, 4096).unwrap();
        let pool = context.pool(&device, UsmKind::Device).unwrap();
        let live = || pool.statistics().used_count;
        let (release, task) = blocked();
        let task_event = queue.host_task(task).unwrap();
        queue.barrier(std::slice::from_ref(&task_event)).unwrap();
        let operation = queue.fill_async(memory, 1).unwrap();
        let event = operation.event().clone();
        drop(operation);
        assert_eq!(live(), 1, "retained while the operation is in flight");
        // The drop of the queue waits, so another thread has to release the task.
        let releaser = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            drop(release);
        });
        let mut parts: [Option<Box<dyn std::any::Any>>; 3] = [
            Some(Box::new(queue)),
            Some(Box::new(task_event)),
            Some(Box::new(event)),
        ];
        let first = order % 3;
        let second = (first + 1 + order / 3) % 3;
        for part in [first, second, 3 - first - second] {
            drop(parts[part].take());
        }
        releaser.join().unwrap();
        assert_eq!(live(), 0);
    }
}

#[test]
fn a_host_task_may_use_the_same_device() {
    // Intel's driver executes the lists of an engine one after the other: if the device waited for the host task, it would not
    // get to the fill that the host task waits for.
    let (context, device, queue) = setup();
    let other = Queue::new(&context, &device).unwrap();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    let theirs = SharedMemory::new(&context, &device, 64).unwrap();
    let (release, task) = blocked();
    let event = queue
        .host_task(move || {
            task();
            wait(&fill(&other, &theirs, 1));
        })
        .unwrap();
    queue.barrier(&[event]).unwrap();
    let filled = fill(&queue, &memory, 2);
    drop(release);
    assert!(filled.wait(Some(Duration::from_secs(20))).unwrap());
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 2));
}

#[test]
fn a_failure_after_a_host_task_is_reported_by_the_event() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    wait(&fill(&queue, &memory, 1));
    let (release, task) = blocked();
    let event = queue.host_task(task).unwrap();
    queue.barrier(&[event]).unwrap();
    let to = memory.as_ptr().cast_mut().cast();
    // SAFETY: a null pointer is refused.
    let copied = unsafe { queue.copy_raw(to, std::ptr::null(), 64, Completion::Event) };
    let copied = copied.unwrap().unwrap();
    let behind = fill(&queue, &memory, 3);
    let other = Queue::new(&context, &device).unwrap();
    other.barrier(std::slice::from_ref(&behind)).unwrap();
    let dependent = fill(&other, &memory, 3);
    assert!(!copied.is_over());
    drop(release);
    // Those that may use the result of the copy fail with it.
    for error in [
        copied.wait(None).unwrap_err(),
        copied.is_complete().unwrap_err(),
        behind.wait(None).unwrap_err(),
        dependent.wait(None).unwrap_err(),
        queue.barrier(std::slice::from_ref(&copied)).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NotExecuted { .. }), "{error}");
        assert_eq!(
            error.result(),
            Some(sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)
        );
    }
    assert!(copied.is_over() && behind.is_over() && dependent.is_over());
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 1));
    // Later operations are not affected.
    wait(&fill(&queue, &memory, 3));
    wait(&fill(&other, &memory, 4));
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 4));
}

#[test]
fn operations_behind_a_failed_host_task_fail() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    wait(&fill(&queue, &memory, 1));
    let (release, task) = blocked();
    let lost = Error::DeviceLost(device.to_string());
    let failed = queue
        .try_host_task(move || {
            task();
            Err(lost)
        })
        .unwrap();
    queue.barrier(std::slice::from_ref(&failed)).unwrap();
    let behind = fill(&queue, &memory, 2);
    // A host task waits for the events of other contexts.
    let apart = zeusm::Context::new(device.driver()).unwrap();
    let elsewhere = Queue::new(&apart, &device).unwrap();
    let dependent = elsewhere.barrier(std::slice::from_ref(&behind)).unwrap();
    release.send(()).unwrap();
    for event in [failed, behind, dependent] {
        let error = event.wait(None).unwrap_err();
        assert_eq!(error.result(), Some(sys::ZE_RESULT_ERROR_DEVICE_LOST));
    }
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 1));
    wait(&fill(&queue, &memory, 3));
}

/// A failure between two looks at the event was lost, and the operation executed. The pause before the submission follows the
/// time that the failure takes to become visible, so that submissions are before, during and after it on any machine.
#[test]
fn a_wait_list_may_fail_during_a_submission() {
    const ROUNDS: u32 = 30_000;
    const DURATION: Duration = Duration::from_secs(2);
    let (context, device, first) = setup();
    let second = Queue::new(&context, &device).unwrap();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    wait(&fill(&second, &memory, 1));
    let mut pause = Duration::ZERO;
    let (mut rounds, mut refused) = (0, 0);
    let begin = Instant::now();
    // Where the host task's thread is delayed, rounds take long, and many of them have the same result.
    let has_both = |rounds, refused| 0 < refused && refused < rounds;
    while rounds < ROUNDS && (begin.elapsed() < DURATION || !has_both(rounds, refused)) {
        rounds += 1;
        let released = Arc::new(AtomicBool::new(false));
        let release = Arc::clone(&released);
        let failed = first.try_host_task(move || {
            while !released.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            Err(Error::NullPointer)
        });
        let failed = failed.unwrap();
        release.store(true, Ordering::Release);
        spin_for(pause);
        let wait_list = std::slice::from_ref(&failed);
        let dependent = second.depends_on(wait_list).and_then(|dependent| {
            let pointer = memory.as_ptr().cast_mut().cast();
            // SAFETY: the memory outlives the fill, which is waited for.
            unsafe { dependent.fill_raw(pointer, 2, 64, Completion::Event) }
        });
        let step = pause / 16 + Duration::from_nanos(100);
        match (dependent, second.barrier(wait_list)) {
            (Ok(Some(filled)), Ok(after)) => {
                filled.wait(None).unwrap_err();
                after.wait(None).unwrap_err();
                pause += step;
            }
            (Ok(Some(filled)), Err(_)) => drop(filled.wait(None).unwrap_err()),
            (Err(_), Err(_)) => {
                refused += 1;
                pause = pause.saturating_sub(step);
            }
            other => panic!("{other:?}"),
        }
        failed.wait(None).unwrap_err();
        assert_eq!(memory.as_slice().unwrap(), [1; 64]);
    }
    assert!(has_both(rounds, refused), "{refused} of {rounds}");
}

/// Waits without giving up the processor.
fn spin_for(pause: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < pause {
        std::hint::spin_loop();
    }
}

#[test]
fn operations_after_a_failed_one_follow_those_before_it() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, 4 * LARGE).unwrap();
    let small = SharedMemory::new(&context, &device, 64).unwrap();
    let (release, task) = blocked();
    let event = queue.host_task(task).unwrap();
    queue.barrier(&[event]).unwrap();
    let first = fill(&queue, &memory, 1);
    let to = memory.as_ptr().cast_mut().cast();
    // SAFETY: a null pointer is refused.
    let copied = unsafe { queue.copy_raw(to, std::ptr::null(), 64, Completion::Event) };
    let copied = copied.unwrap().unwrap();
    let after = fill(&queue, &small, 2);
    drop(release);
    copied.wait(None).unwrap_err();
    assert!(first.is_complete().unwrap());
    after.wait(None).unwrap_err();
}

#[test]
fn a_foreign_event_is_signalled_in_order() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, LARGE).unwrap();
    // An event of another queue of the context.
    let (other, owner) = {
        let owner = Queue::new(queue.context(), queue.device()).unwrap();
        let event = owner.barrier(&[]).unwrap();
        wait(&event);
        (event, owner)
    };
    let filled = fill(&queue, &memory, 1);
    // SAFETY: the event has no other use, belongs to the same context, and lives until the end of the test.
    let signalled = unsafe { queue.signal_raw(other.handle()) }
        .unwrap()
        .unwrap();
    wait(&other);
    assert!(filled.is_complete().unwrap());
    wait(&signalled);
    let (release, task) = blocked();
    let event = queue.host_task(task).unwrap();
    let after = queue.barrier(&[event]).unwrap();
    // SAFETY: as above.
    let deferred = unsafe { queue.signal_raw(other.handle()) }.unwrap();
    assert!(deferred.is_none() && other.is_complete().unwrap());
    drop(release);
    wait(&after);
    drop(owner);
}

/// The drop of the other queue does not wait for an operation that waits for a later task of this thread.
#[test]
fn a_task_may_drop_the_last_clone_of_another_queue() {
    let (context, device, queue) = setup();
    let other = Queue::new(&context, &device).unwrap();
    let (release, task) = blocked();
    let dropped = other.clone();
    let first = queue.host_task(move || {
        task();
        drop(dropped);
    });
    let second = queue.host_task(|| {}).unwrap();
    let behind = other.barrier(&[second]).unwrap();
    drop(other);
    drop(release);
    let timeout = Some(Duration::from_secs(20));
    assert!(first.unwrap().wait(timeout).unwrap());
    assert!(behind.wait(timeout).unwrap());
}

#[test]
fn operations_have_timing() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, LARGE).unwrap();
    let begun = Instant::now();
    let (first, second) = (fill(&queue, &memory, 1), fill(&queue, &memory, 2));
    let (release, task) = blocked();
    let event = queue.host_task(task).unwrap();
    queue.barrier(&[event]).unwrap();
    let third = fill(&queue, &memory, 3);
    let early = third.timing().unwrap_err();
    assert_eq!(early.result(), Some(sys::ZE_RESULT_NOT_READY));
    drop(release);
    queue.wait().unwrap();
    let elapsed = begun.elapsed();
    let submitted = first.device_time(begun).unwrap();
    let [first, second, third] = [first, second, third].map(|event| event.timing().unwrap());
    assert!(submitted <= first.start);
    let waited = Duration::from_nanos(first.start - submitted);
    assert!(waited <= elapsed + Duration::from_millis(50), "{waited:?}");
    assert!(first.start <= first.end && first.end <= second.start && second.end <= third.start);
    assert!(first.duration() > Duration::from_micros(50), "{first:?}");
    assert!(first.duration() + second.duration() + third.duration() <= elapsed);
}

#[test]
fn hints_are_executed_in_order_and_change_nothing() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, LARGE).unwrap();
    let filled = fill(&queue, &memory, 4);
    // SAFETY: the memory outlives both hints.
    let (fetched, advised) = unsafe {
        let fetched = queue.prefetch_raw(memory.as_ptr().cast(), LARGE).unwrap();
        let advice = sys::ZE_MEMORY_ADVICE_SET_READ_MOSTLY;
        let advised = queue.advise_raw(memory.as_ptr().cast(), LARGE, advice);
        (fetched, advised.unwrap())
    };
    wait(&fetched);
    assert!(filled.is_complete().unwrap());
    wait(&advised);
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 4));
    // SAFETY: a null pointer is refused.
    let refused = unsafe { queue.prefetch_raw(std::ptr::null(), 64) };
    assert!(matches!(
        refused,
        Err(Error::Operation {
            operation: "prefetch",
            ..
        })
    ));
    queue.wait().unwrap();
}

/// Of several copies, as other threads may take this one's processor.
#[test]
fn copies_overlap_with_the_host() {
    let (context, device, queue) = setup();
    let overlaps = |_| {
        let memory = DeviceMemory::new(&context, &device, 2 * LARGE).unwrap();
        let operation = queue.fill_async(memory, 1).unwrap();
        let mut turns = 0u64;
        while !operation.is_complete().unwrap() {
            turns += 1;
        }
        operation.wait().unwrap();
        turns > 10
    };
    assert!((0..20).any(overlaps), "the host was blocked");
}

#[test]
fn the_host_waits_before_an_append_that_may_block() {
    let (context, device, queue) = setup();
    let memory = |size| DeviceMemory::new(&context, &device, size).unwrap();
    loop {
        let before = queue.fill_async(memory(2 * LARGE), 1).unwrap();
        let fill = queue.fill_async(memory(64), 2).unwrap();
        let read = queue.read_async(memory(64), vec![0; 64]).unwrap();
        let fill_at_once = fill.event().is_submitted();
        let read_at_once = read.event().is_submitted();
        let after = queue.fill_async(memory(64), 3).unwrap();
        if before.is_complete().unwrap() {
            // Operations of the next turn are not submitted at once while some of this one are still to be submitted.
            after.wait().unwrap();
            continue;
        }
        assert!(fill_at_once);
        assert_eq!(read_at_once, !device.migrates_shared_memory());
        after.wait().unwrap();
        assert!(before.is_complete().unwrap() && read.is_complete().unwrap());
        break;
    }
}

#[test]
fn the_duration_of_a_callers_timing_is_never_negative() {
    assert_eq!(Timing { start: 2, end: 1 }.duration(), Duration::ZERO);
}

#[test]
fn an_event_that_is_used_again_completes_with_its_operation() {
    let (context, device, queue) = setup();
    for _ in 0..50 {
        let memory = || SharedMemory::new(&context, &device, 4096).unwrap();
        let (one, two, three) = (memory(), memory(), memory());
        wait(&fill(&queue, &one, 1));
        // The event of the first one may be free now, and serve for the third one.
        let second = fill(&queue, &two, 2);
        wait(&fill(&queue, &three, 3));
        wait(&second);
        for (memory, value) in [(&one, 1), (&two, 2), (&three, 3)] {
            assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == value));
        }
    }
}

#[test]
fn the_time_of_the_end_is_complete_with_the_operation() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, 4096).unwrap();
    for value in 0..50 {
        let event = fill(&queue, &memory, value);
        wait(&event);
        let timing = event.timing().unwrap();
        assert!(timing.duration() < Duration::from_secs(60), "{timing:?}");
    }
}

#[test]
fn threads_chain_queues() {
    let (context, device, first) = setup();
    let second = Queue::new(&context, &device).unwrap();
    std::thread::scope(|scope| {
        for value in 0..4 {
            let (first, second, context, device) = (&first, &second, &context, &device);
            scope.spawn(move || {
                for _ in 0..100 {
                    let memory = SharedMemory::new(context, device, 4096).unwrap();
                    let zero = fill(first, &memory, 0xee);
                    second.barrier(&[zero]).unwrap();
                    wait(&fill(second, &memory, value));
                    let found = memory.as_slice().unwrap();
                    let wrong = found.iter().position(|&byte| byte != value);
                    let wrong = wrong.map(|index| (index, found[index]));
                    assert_eq!(wrong, None, "the first byte that is not {value}");
                }
            });
        }
    });
}

/// Runs the other tests of this file in a new process.
fn all_of_these_pass_with(variable: &str, value: &str) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--skip", "all_of_these_pass_with"])
        .env(variable, value)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}

#[test]
fn all_of_these_pass_with_one_engine() {
    all_of_these_pass_with("ZEUSM_CPU_ENGINES", "1");
}

#[test]
fn all_of_these_pass_with_independent_lists() {
    all_of_these_pass_with("ZEUSM_CPU_ENGINES", "queue");
}

#[test]
fn all_of_these_pass_with_a_discrete_device() {
    all_of_these_pass_with("ZEUSM_CPU_DISCRETE", "1");
}
