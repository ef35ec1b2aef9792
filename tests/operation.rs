//! Operations in flight, as the program sees them.
#![allow(clippy::unwrap_used)]

use std::slice;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use zeusm::{Context, DeviceMemory, Error, HostMemory, Queue, Runtime};

#[test]
fn the_debug_output_of_an_operation_omits_its_operands() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let event = queue
        .host_task(move || released.recv().unwrap_or_default())
        .unwrap();
    queue.barrier(&[event]).unwrap();
    let memory = DeviceMemory::new(&context, &device, 4).unwrap();
    let operation = queue.read_async(memory, vec![171; 4]).unwrap();
    let shown = format!("{operation:?}");
    // One 171 may be a part of an address.
    let omits = shown.contains("Operation") && !shown.contains("171, 171");
    assert!(omits, "{shown}");
    drop(release);
    operation.wait().unwrap();
}

/// It was complete at once.
#[test]
fn an_operation_without_bytes_waits_for_its_wait_list() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let [first, second] = [(); 2].map(|()| Queue::new(&context, &device).unwrap());
    let empty = || HostMemory::new(&context, &device, 0).unwrap();
    for fails in [false, true] {
        let (release, released) = mpsc::channel::<()>();
        let task = move || {
            let _ = released.recv();
            if fails {
                Err(Error::NullPointer)
            } else {
                Ok(())
            }
        };
        let before = first.try_host_task(task).unwrap();
        let dependent = second.depends_on(slice::from_ref(&before)).unwrap();
        let filled = dependent.fill_async(empty(), 1).unwrap();
        assert!(!filled.is_complete().unwrap());
        let ended = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            drop(release);
        });
        let waited = dependent.write(&mut empty(), &[]);
        assert!(before.is_over() && waited.is_err() == fails);
        assert_eq!(filled.wait().is_err(), fails);
        ended.join().unwrap();
    }
    // Without one it is complete.
    assert!(
        second
            .fill_async(empty(), 1)
            .unwrap()
            .is_complete()
            .unwrap()
    );
}
