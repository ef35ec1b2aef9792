//! A queue, and operations on it.

use std::sync::mpsc;

use zeusm::{Completion, Context, Device, Event, Queue, Runtime, SharedMemory};

/// The default device, with a context and a queue.
pub fn setup() -> (Context, Device, Queue) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    (context, device, queue)
}

/// A host task that returns when the sender is used or dropped.
pub fn blocked() -> (mpsc::Sender<()>, impl FnOnce() + Send + 'static) {
    let (release, released) = mpsc::channel();
    (release, move || released.recv().unwrap_or_default())
}

pub fn wait(event: &Event) {
    assert!(event.wait(None).unwrap());
}

pub fn fill(queue: &Queue, memory: &SharedMemory, value: u8) -> Event {
    let to = memory.as_ptr().cast_mut().cast();
    // SAFETY: the tests keep the memory until the fill is complete, and access it only then.
    unsafe { queue.fill_raw(to, value, memory.size(), Completion::Event) }
        .unwrap()
        .unwrap()
}
