//! Waits that fail: while an operation is in flight, and on a device that is lost.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use zeusm::{Context, Queue, SharedMemory, sys};

use crate::child;
use crate::driver::FaultDriver;

#[test]
fn only_a_long_wait_without_success_queries_the_device() {
    child::run(child::command("waits::lost_device"));
}

#[test]
#[ignore = "run by only_a_long_wait_without_success_queries_the_device"]
fn lost_device() {
    let driver = FaultDriver::open();
    let device = driver.serve().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let pending = queue.host_task(move || released.recv().unwrap_or_default());
    let pending = pending.unwrap();
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
    drop(release);
    assert!(pending.wait(None).unwrap());
    let (answer, fired) = wait(None);
    assert!(answer.unwrap());
    assert_eq!(fired, None);
}

#[test]
fn after_a_failed_wait_operands_are_not_in_use() {
    child::run(child::command("waits::failed_waits"));
}

#[test]
#[ignore = "run by after_a_failed_wait_operands_are_not_in_use"]
fn failed_waits() {
    let driver = FaultDriver::open();
    let device = driver.serve().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    let wait = "zeEventHostSynchronize";
    let blocked = || {
        let (release, released) = mpsc::channel::<()>();
        let task = move || released.recv().unwrap_or_default();
        let event = queue.host_task(task).unwrap();
        queue.barrier(&[event]).unwrap();
        release
    };
    // A synchronous operation returns its operands only when it is complete.
    let mut memory = SharedMemory::new(&context, &device, 64).unwrap();
    let mut nth = 1;
    loop {
        memory.as_mut_slice().unwrap().fill(0);
        let release = blocked();
        let later = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            drop(release);
        });
        driver.arm(nth, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
        let filled = queue.fill(&mut memory, 7);
        let fired = driver.fired();
        driver.arm(0, sys::ZE_RESULT_SUCCESS);
        if fired.as_deref() == Some(wait) && filled.is_err() {
            assert_eq!(memory.as_slice().unwrap(), [7; 64]);
            later.join().unwrap();
            break;
        }
        assert!(fired.is_some(), "there was no failed wait in {nth} calls");
        later.join().unwrap();
        queue.wait().unwrap();
        nth += 1;
    }
    // An asynchronous one keeps its operands.
    let address = memory.as_ptr().addr();
    let is_allocated = || context.pointer_attributes(address).is_ok();
    let release = blocked();
    let operation = queue.fill_async(memory, 8).unwrap();
    driver.arm(1, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    let error = operation.wait().unwrap_err();
    assert_eq!(driver.fired().as_deref(), Some(wait), "{error}");
    driver.arm(0, sys::ZE_RESULT_SUCCESS);
    queue.reclaim();
    assert!(is_allocated());
    drop(release);
    queue.wait().unwrap();
    queue.reclaim();
    assert!(!is_allocated());
}
