//! Copies between overlapping parts of memory, of whose operations one fails.

use std::sync::mpsc;
use std::thread;

use zeusm::{Completion, Context, DeviceMemory, Queue, SharedMemory, sys};

use crate::child;
use crate::driver::{self, FaultDriver};

const SIZE: usize = 1 << 16;
const APPEND: &str = "zeCommandListAppendMemoryCopy";
const ERROR: sys::ze_result_t = sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;

/// Both halves are submitted later. When the first one fails, the second one must not copy the staging memory.
#[test]
fn a_failure_of_one_half_is_reported() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let mut failures = 0;
        for nth in 1.. {
            let queue = Queue::new(&context, &device).unwrap();
            let mut memory = SharedMemory::new(&context, &device, SIZE).unwrap();
            memory.as_mut_slice().unwrap().fill(1);
            let first = memory.as_ptr().cast_mut();
            let (release, released) = mpsc::channel::<()>();
            let task = queue.host_task(move || _ = released.recv()).unwrap();
            queue.barrier(&[task]).unwrap();
            // SAFETY: the memory is alive until the copy is complete.
            let copy = unsafe {
                let to = first.wrapping_byte_add(1).cast();
                queue.copy_raw(to, first.cast_const().cast(), SIZE - 1, Completion::Event)
            };
            let event = copy.unwrap().unwrap();
            driver.arm(nth, ERROR);
            drop(release);
            // Only the queue's thread makes calls now.
            while !event.is_submitted() {
                thread::yield_now();
            }
            let fired = driver.disarm();
            let answer = event.wait(None);
            // The error of the last operation.
            assert_eq!(queue.wait().is_err(), answer.is_err());
            if fired.as_deref() == Some(APPEND) {
                failures += 1;
                assert!(answer.is_err(), "call {nth}");
            }
            assert_eq!(memory.as_slice().unwrap(), [1; SIZE], "call {nth}");
            if fired.is_none() {
                break;
            }
        }
        assert_eq!(failures, 2);
    });
}

#[test]
fn after_a_failure_the_operands_are_not_in_use() {
    child::alone(&[], || {
        let (driver, device, context, queue) = driver::set_up();
        let mut large = DeviceMemory::new(&context, &device, 512 << 20).unwrap();
        let mut failures = 0;
        for nth in 1.. {
            let memory = SharedMemory::new(&context, &device, SIZE).unwrap();
            let first = memory.as_ptr().cast_mut();
            let fill = queue.fill_async(large, 1).unwrap();
            driver.arm(nth, ERROR);
            // SAFETY: the memory is alive until the queue has been waited for.
            let copy = unsafe {
                let to = first.wrapping_byte_add(1).cast();
                queue.copy_raw(to, first.cast_const().cast(), SIZE - 1, Completion::Event)
            };
            let fired = driver.disarm();
            if fired.as_deref() == Some(APPEND) {
                failures += 1;
                assert!(copy.is_err(), "call {nth}");
                // The second half failed, and the first one waits for the fill.
                assert!(failures == 1 || fill.event().is_over());
            }
            large = fill.wait().unwrap();
            queue.wait().unwrap();
            assert!(fired.is_some(), "{failures} failures");
            if failures == 2 {
                break;
            }
        }
    });
}
