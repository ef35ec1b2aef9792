//! The drop of a queue that retains operands of operations in flight, where waits fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use zeusm::{Context, Event, Queue, sys};

use crate::child;
use crate::driver::FaultDriver;

const ALIVE: u32 = 0;
const IN_FLIGHT: u32 = 1;
const OVER: u32 = 2;

/// An operand that records the state of its operation when it is dropped.
struct Operand {
    event: Event,
    state: Arc<AtomicU32>,
}

impl Operand {
    fn new(event: &Event) -> (Self, Arc<AtomicU32>) {
        let state = Arc::default();
        let operand = Self {
            event: event.clone(),
            state: Arc::clone(&state),
        };
        (operand, state)
    }
}

impl Drop for Operand {
    fn drop(&mut self) {
        // One query may be the call that fails.
        let is_over = self.event.is_over() || self.event.is_over();
        let state = if is_over { OVER } else { IN_FLIGHT };
        self.state.store(state, Ordering::SeqCst);
    }
}

#[test]
fn operands_of_another_queue_are_alive_until_its_operation_is_over() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let other = Queue::new(&context, &device).unwrap();
        let mut failed_waits = 0;
        for nth in 1.. {
            let queue = Queue::new(&context, &device).unwrap();
            let held = driver.hold(&other);
            // Makes the command list, which is idle.
            queue.barrier(&[]).unwrap().wait(None).unwrap();
            let (operand, state) = Operand::new(&held);
            queue.retain(&held, operand);
            driver.arm(nth, sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
            driver.release_after_failure(|| {
                thread::scope(|scope| {
                    let dropping = scope.spawn(|| drop(queue));
                    thread::sleep(Duration::from_millis(20));
                    if driver.fired().is_none() {
                        held.release();
                    }
                    dropping.join().unwrap();
                });
            });
            let fired = driver.disarm();
            assert_ne!(state.load(Ordering::SeqCst), IN_FLIGHT, "{fired:?}");
            failed_waits += u32::from(fired.as_deref() == Some("zeEventHostSynchronize"));
            if fired.is_none() {
                break;
            }
        }
        assert!(failed_waits > 0);
    });
}

#[test]
fn operands_of_another_device_are_alive_after_the_loss_of_the_queues_own() {
    child::alone(
        &[("ZEUSM_CPU_DEVICES", "2"), ("ZEUSM_CPU_ENGINES", "queue")],
        || {
            let driver = FaultDriver::open();
            let devices = driver.serve().drivers()[0].devices().unwrap();
            let context = Context::new(devices[0].driver()).unwrap();
            let [queue, other] = [0, 1].map(|index| Queue::new(&context, &devices[index]).unwrap());
            let (own, held) = (driver.hold(&queue), driver.hold(&other));
            queue.retain(&own, ());
            let (operand, state) = Operand::new(&held);
            queue.retain(&held, operand);
            driver.lose(&own, Some(&devices[0]));
            thread::scope(|scope| {
                scope.spawn(|| {
                    driver.lose_here(true);
                    drop(queue);
                });
                // Longer than waits that fail are repeated.
                thread::sleep(Duration::from_millis(500));
                assert_eq!(state.load(Ordering::SeqCst), ALIVE);
                held.release();
            });
            assert_eq!(state.load(Ordering::SeqCst), OVER);
        },
    );
}

#[test]
fn operands_that_a_device_may_access_are_leaked() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let other = Queue::new(&context, &device).unwrap();
        for is_own in [true, false] {
            let queue = Queue::new(&context, &device).unwrap();
            // Makes the command list.
            queue.barrier(&[]).unwrap().wait(None).unwrap();
            let held = driver.hold(if is_own { &queue } else { &other });
            let (operand, state) = Operand::new(&held);
            queue.retain(&held, operand);
            driver.lose(&held, None);
            thread::scope(|scope| {
                scope.spawn(|| {
                    driver.lose_here(true);
                    drop(queue);
                });
            });
            assert_eq!(state.load(Ordering::SeqCst), ALIVE);
            held.release();
        }
    });
}
