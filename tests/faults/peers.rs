//! Copies between contexts on a driver that lacks direct ones.

use std::thread;
use std::time::{Duration, Instant};

use zeusm::{Context, Queue, SharedMemory, sys};

use crate::child;
use crate::driver::FaultDriver;

const TIMEOUT: Duration = Duration::from_secs(60);
const APPEND: &str = "zeCommandListAppendMemoryCopyFromContext";

#[test]
fn a_copy_that_waits_for_the_host_can_be_staged() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let [here, there] = [(); 2].map(|()| Context::new(device.driver()).unwrap());
        let from = Queue::new(&there, &device).unwrap();
        let mut source = SharedMemory::new(&there, &device, 64).unwrap();
        source.as_mut_slice().unwrap().fill(7);
        let begun = Instant::now();
        let mut nth = 0;
        loop {
            nth += 1;
            let [to, other] = [(); 2].map(|()| Queue::new(&here, &device).unwrap());
            let memory = SharedMemory::new(&here, &device, 64).unwrap();
            let task = || thread::sleep(Duration::from_millis(20));
            let dependent = to.depends_on(&[other.host_task(task).unwrap()]).unwrap();
            let (out, into) = (source.as_ptr().cast(), memory.as_ptr().cast_mut().cast());
            driver.arm(nth, sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
            // SAFETY: both are alive until this returns, and have 64 bytes.
            let copied = unsafe { dependent.peer_copy_raw(into, &from, out, 64) };
            let fired = driver.disarm();
            if fired.as_deref() == Some(APPEND) {
                copied.unwrap();
                assert_eq!(memory.as_slice().unwrap(), [7; 64]);
                return;
            }
            if fired.is_none() {
                // Queries of events by other threads change the number of the call from one attempt to the next.
                assert!(begun.elapsed() < TIMEOUT, "no direct copy in {nth} calls");
                nth = 0;
            }
        }
    });
}
