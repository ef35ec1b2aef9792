//! Operations in flight, as the program sees them.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc;

use zeusm::{Context, DeviceMemory, Queue, Runtime};

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
