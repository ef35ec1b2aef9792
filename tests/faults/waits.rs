//! Waits that fail: while an operation is in flight, and on a device that is lost.

use std::slice;
use std::sync::mpsc;
use std::time::Duration;

use zeusm::{Context, DeviceMemory, Queue, SharedMemory, sys};

use crate::child;
use crate::driver::{self, FaultDriver};

#[test]
fn only_a_long_wait_without_success_queries_the_device() {
    child::alone(&[], || {
        let (driver, _, _, queue) = driver::set_up();
        let pending = driver.hold(&queue);
        // The first call is the wait; a second one can only be the query of the status.
        let wait = |timeout| {
            driver.arm(2, sys::ZE_RESULT_ERROR_DEVICE_LOST);
            (pending.wait(timeout), driver.fired())
        };
        let (answer, fired) = wait(Some(Duration::from_millis(9)));
        assert!(!answer.unwrap());
        assert_eq!(fired, None);
        for timeout in [10, 20] {
            let (answer, fired) = wait(Some(Duration::from_millis(timeout)));
            let lost = Some(sys::ZE_RESULT_ERROR_DEVICE_LOST);
            assert_eq!(answer.unwrap_err().result(), lost);
            assert_eq!(fired.as_deref(), Some("zeDeviceGetStatus"));
        }
        driver.arm(0, sys::ZE_RESULT_SUCCESS);
        pending.release();
        assert!(pending.wait(None).unwrap());
        let (answer, fired) = wait(None);
        assert!(answer.unwrap());
        assert_eq!(fired, None);
    });
}

#[test]
fn after_a_failed_wait_operands_are_not_in_use() {
    child::alone(&[], || {
        let (driver, device, context, queue) = driver::set_up();
        let wait = "zeEventHostSynchronize";
        // A synchronous operation returns its operands only when it is complete.
        let mut memory = SharedMemory::new(&context, &device, 64).unwrap();
        let mut nth = 1;
        loop {
            memory.as_mut_slice().unwrap().fill(0);
            let _held = driver.hold(&queue);
            driver.arm(nth, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
            let (has_failed, bytes) = driver.release_after_failure(|| {
                let has_failed = queue.fill(&mut memory, 7).is_err();
                // SAFETY: host and device may access shared memory concurrently.
                (has_failed, unsafe { *memory.as_ptr().cast::<[u8; 64]>() })
            });
            let fired = driver.disarm();
            if fired.as_deref() == Some(wait) && has_failed {
                assert_eq!(bytes, [7; 64]);
                break;
            }
            assert!(fired.is_some(), "there was no failed wait in {nth} calls");
            queue.wait().unwrap();
            nth += 1;
        }
        // An asynchronous one keeps its operands.
        let address = memory.as_ptr().addr();
        let is_allocated = || context.pointer_attributes(address).is_ok();
        let held = driver.hold(&queue);
        let operation = queue.fill_async(memory, 8).unwrap();
        driver.arm(1, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
        let error = operation.wait().unwrap_err();
        assert_eq!(driver.fired().as_deref(), Some(wait), "{error}");
        driver.arm(0, sys::ZE_RESULT_SUCCESS);
        queue.reclaim();
        assert!(is_allocated());
        held.release();
        queue.wait().unwrap();
        queue.reclaim();
        assert!(!is_allocated());
    });
}

#[test]
fn after_a_failed_append_a_failed_wait_waits_for_the_operations_before_it() {
    child::alone(&[], || {
        let (driver, device, context, queue) = driver::set_up();
        let error = sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        let pending = driver.hold(&queue);
        for nth in 1.. {
            let memory = DeviceMemory::new(&context, &device, 64).unwrap();
            driver.arm(nth, error);
            let failed = queue.fill_async(memory, 1).is_err();
            let fired = driver.disarm();
            if fired.as_deref() == Some("zeCommandListAppendMemoryFill") && failed {
                break;
            }
            assert!(fired.is_some(), "there was no append in {nth} calls");
        }
        // An operation that is deferred, as it waits for the host.
        let (release, released) = mpsc::channel::<()>();
        let task = queue.host_task(move || _ = released.recv()).unwrap();
        let deferred = queue.barrier(&[task]).unwrap();
        assert!(!deferred.is_submitted());
        driver.arm(1, error);
        driver.release_after_failure(|| {
            queue.finish(&pending, "barrier", 1).unwrap_err();
            assert!(pending.is_complete().unwrap());
        });
        driver.arm(0, sys::ZE_RESULT_SUCCESS);
        drop(release);
        assert!(deferred.wait(None).unwrap());
    });
}

/// The device may still wait for the list, so it must be neither destroyed nor its events reused.
#[test]
fn after_a_failed_append_an_operation_follows_its_wait_list() {
    // The queues have an engine each, so that the second one is idle.
    child::alone(&[("ZEUSM_CPU_ENGINES", "queue")], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let [first, second] = [(); 2].map(|()| Queue::new(&context, &device).unwrap());
        let mut memory = SharedMemory::new(&context, &device, 64).unwrap();
        for nth in 1.. {
            second.fill(&mut memory, 1).unwrap();
            let pending = driver.hold(&first);
            driver.arm(nth, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
            let barrier = second.barrier(slice::from_ref(&pending));
            let fired = driver.fired();
            if fired.as_deref() == Some("zeCommandListAppendBarrier") {
                assert!(barrier.is_err());
                driver.release_after_failure(|| {
                    second.fill(&mut memory, 2).unwrap();
                    assert!(pending.is_over());
                });
                return;
            }
            assert!(fired.is_some(), "no barrier in {nth} calls");
            pending.release();
            second.wait().unwrap();
        }
    });
}

#[test]
fn a_failed_signal_leaves_none_pending() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let [queue, owner] = [(); 2].map(|()| Queue::new(&context, &device).unwrap());
        let mut failures = 0;
        for nth in 1.. {
            let foreign = owner.barrier(&[]).unwrap();
            assert!(foreign.wait(None).unwrap());
            let _held = driver.hold(&queue);
            driver.arm(nth, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
            let (signalled, at_once) = driver.release_after_failure(|| {
                // SAFETY: the event has no other use, belongs to the same context, and lives until the queue is idle.
                let signalled = unsafe { queue.signal_raw(foreign.handle()) };
                (signalled, foreign.is_complete())
            });
            let fired = driver.disarm();
            queue.wait().unwrap();
            if fired.is_none() {
                break;
            }
            if signalled.is_err() {
                assert_eq!(
                    at_once.unwrap(),
                    foreign.is_complete().unwrap(),
                    "{fired:?}"
                );
                failures += 1;
                // The next barrier waits for the event.
                // SAFETY: as above.
                unsafe { queue.signal_raw(foreign.handle()) }.unwrap();
            }
        }
        assert!(failures >= 2, "of each barrier");
    });
}
