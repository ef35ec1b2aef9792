//! Calls that are repeated after the pools have returned their free memory.

use std::collections::BTreeSet;

use zeusm::{Context, Queue, SharedMemory, sys};

use crate::child;
use crate::driver::FaultDriver;

#[test]
fn the_first_operation_of_a_queue_is_retried_without_memory() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let mut retried = BTreeSet::new();
        for nth in 1.. {
            let memory = SharedMemory::new(&context, &device, 64).unwrap();
            driver.arm(nth, sys::ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
            let operation = Queue::new(&context, &device).and_then(|queue| {
                let fill = queue.fill_async(memory, 7)?;
                Ok((queue, fill))
            });
            let fired = driver.disarm();
            let Some(function) = fired else { break };
            if let Ok((queue, _fill)) = operation {
                queue.wait().unwrap();
                retried.insert(function);
            }
        }
        for function in [
            "zeCommandListCreateImmediate",
            "zeEventPoolCreate",
            "zeEventCreate",
            "zeEventHostReset",
        ] {
            assert!(retried.contains(function), "{function} of {retried:?}");
        }
    });
}
