//! Waits for events on a device that is lost.

use std::sync::mpsc;
use std::time::Duration;

use zeusm::{Context, Queue, sys};

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
