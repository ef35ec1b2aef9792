//! Waits that keep failing: on a device that is lost, and where no query of a status tells.

use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use zeusm::{Context, Device, DeviceMemory, Error, Event, HostMemory, Queue, SharedMemory, sys};

use crate::child;
use crate::driver::{self, FaultDriver};

/// Submits an operation that is in flight for longer than failing waits are repeated.
fn long(driver: &FaultDriver, queue: &Queue) -> Event {
    let held = driver.hold(queue);
    let event = held.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        held.release();
    });
    event
}

/// Waits without a call that fails.
fn end(event: &Event) {
    while !event.is_over() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn set_up(device: &Device) -> (Context, Queue) {
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, device).unwrap();
    (context, queue)
}

/// A queue, and memory with a 7 in each byte.
fn of_sevens(driver: &FaultDriver, size: usize) -> (Queue, SharedMemory) {
    let device = driver.serve().default_device().unwrap();
    let (context, queue) = set_up(&device);
    let mut memory = SharedMemory::new(&context, &device, size).unwrap();
    memory.as_mut_slice().unwrap().fill(7);
    (queue, memory)
}

fn assert_is_not_executed(event: &Event) {
    let error = event.wait(None).unwrap_err();
    assert!(matches!(error, Error::NotExecuted { .. }), "{error}");
    assert_eq!(error.result(), Some(sys::ZE_RESULT_ERROR_DEVICE_LOST));
}

#[test]
fn an_operation_behind_another_device_whose_waits_fail_is_not_appended() {
    child::alone(
        &[("ZEUSM_CPU_DEVICES", "2"), ("ZEUSM_CPU_ENGINES", "queue")],
        || {
            let driver = FaultDriver::open();
            let devices = driver.serve().drivers()[0].devices().unwrap();
            let (context, other) = set_up(&devices[0]);
            let queue = Queue::new(&context, &devices[1]).unwrap();
            let last = long(&driver, &other);
            let target = DeviceMemory::new(&context, &devices[1], 64).unwrap();
            let dependent = queue.depends_on(slice::from_ref(&last)).unwrap();
            driver.lose(&last, None);
            assert_is_not_executed(dependent.fill_async(target, 2).unwrap().event());
            end(&last);
        },
    );
}

#[test]
fn an_operation_behind_its_own_lost_device_is_not_appended() {
    // The append may wait, so the host does before it.
    child::alone(&[("ZEUSM_CPU_DISCRETE", "1")], || {
        let (driver, device, context, queue) = driver::set_up();
        for lost in [None, Some(&device)] {
            let last = long(&driver, &queue);
            let target = DeviceMemory::new(&context, &device, 64).unwrap();
            driver.lose(&last, lost);
            let written = queue.write_async(target, vec![3; 64]).unwrap();
            assert_is_not_executed(written.event());
            assert_eq!(device.check_not_lost().is_err(), lost.is_some());
            end(&last);
        }
    });
}

#[test]
fn a_failed_operation_is_over_after_those_before_it_also_if_waits_fail() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let (_context, queue) = set_up(&driver.serve().default_device().unwrap());
        let last = long(&driver, &queue);
        driver.lose(&last, None);
        let failed = queue.try_host_task(|| {
            thread::sleep(Duration::from_millis(5));
            Err(Error::NullPointer)
        });
        let behind = queue.barrier(&[failed.unwrap()]).unwrap();
        behind.wait(None).unwrap_err();
        assert!(
            last.is_over(),
            "later operations wait for the failed one only"
        );
    });
}

#[test]
fn an_event_of_another_context_is_over_where_only_its_wait_fails() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let ((context, queue), (_there, other)) = (set_up(&device), set_up(&device));
        let before = other.barrier(&[]).unwrap();
        end(&before);
        driver.lose(&before, None);
        let memory = SharedMemory::new(&context, &device, 64).unwrap();
        let dependent = queue.depends_on(&[before]).unwrap();
        let memory = dependent.fill_async(memory, 2).unwrap().wait().unwrap();
        assert_eq!(memory.as_slice().unwrap(), [2; 64]);
    });
}

#[test]
fn a_loss_that_a_wait_reports_is_recorded() {
    child::alone(&[], || {
        let driver = FaultDriver::open();
        let device = driver.serve().default_device().unwrap();
        let (_context, queue) = set_up(&device);
        let event = queue.barrier(&[]).unwrap();
        driver.lose(&event, None);
        // The status does not confirm it.
        let error = event.wait(None).unwrap_err();
        assert!(matches!(error, Error::Call { .. }), "{error}");
        device.check_not_lost().unwrap();
        driver.lose(&event, Some(&device));
        let error = event.wait(None).unwrap_err();
        assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
        device.check_not_lost().unwrap_err();
    });
}

#[test]
fn shared_memory_that_cannot_migrate_any_more_has_no_slices() {
    child::alone(&[("ZEUSM_CPU_DISCRETE", "1")], || {
        let (driver, device, context, queue) = driver::set_up();
        let mut shared = SharedMemory::new(&context, &device, 64).unwrap();
        let host = HostMemory::new(&context, &device, 64).unwrap();
        shared.as_mut_slice().unwrap().fill(2);
        let event = queue.barrier(&[]).unwrap();
        driver.lose(&event, Some(&device));
        event.wait(None).unwrap_err();
        for answer in [shared.as_slice().map(drop), shared.as_mut_slice().map(drop)] {
            assert!(matches!(answer, Err(Error::DeviceLost { .. })));
        }
        assert_eq!(host.as_slice().unwrap().len(), 64);
    });
}

/// The reads of one thread signal no event, and the barriers of another one have to append that signal.
#[test]
fn a_read_behind_which_the_signal_and_the_wait_fail_is_complete_when_it_returns() {
    child::alone(&[], || {
        const SIZE: usize = 32 << 20;
        let driver = FaultDriver::open();
        let (queue, memory) = of_sevens(&driver, SIZE);
        let mut bytes = vec![0; SIZE];
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                driver.lose_here(true);
                while !is_over.load(Ordering::Relaxed) {
                    queue.barrier(&[]).unwrap_err();
                }
            });
            let reads = [(); 15].map(|()| {
                bytes.fill(0);
                (queue.read(&memory, &mut bytes), bytes[SIZE - 1])
            });
            is_over.store(true, Ordering::Relaxed);
            for (answer, last) in reads {
                answer.unwrap();
                assert_eq!(last, 7);
            }
        });
    });
}

/// All waits for the command list fail, and an event is appended in their place.
#[test]
fn a_read_is_over_when_it_returns_an_error() {
    child::alone(&[], || {
        const SIZE: usize = 256 << 20;
        let driver = FaultDriver::open();
        let (queue, memory) = of_sevens(&driver, SIZE);
        let mut bytes = vec![1; SIZE];
        driver.lose_here(false);
        queue.read(&memory, &mut bytes).unwrap_err();
        assert_eq!(bytes[SIZE - 1], 7);
    });
}
