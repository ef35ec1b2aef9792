//! Copies between contexts: directly, and in pieces as between devices that cannot reach each other.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use zeusm::{Completion, Context, Device, Queue, Runtime, SharedMemory};

/// Several pieces, and not a whole number of them.
const SIZE: usize = (9 << 20) + 5;

fn place() -> (Context, Device, Queue) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    (context, device, queue)
}

/// Memory whose bytes tell where they are.
fn counted(context: &Context, device: &Device) -> SharedMemory {
    let mut memory = SharedMemory::new(context, device, SIZE).unwrap();
    for (index, byte) in memory.as_mut_slice().unwrap().iter_mut().enumerate() {
        *byte = (index % 251) as u8;
    }
    memory
}

#[test]
fn a_device_reaches_itself() {
    let (_, device, _) = place();
    assert!(device.can_access(&device).unwrap());
}

#[test]
fn memory_comes_from_another_context() {
    let (there, device, from) = place();
    let (here, _, to) = place();
    let source = counted(&there, &device);
    let copy = |size, in_pieces| {
        let mut memory = SharedMemory::new(&here, &device, SIZE).unwrap();
        memory.as_mut_slice().unwrap().fill(255);
        let (out, into) = (source.as_ptr().cast(), memory.as_ptr().cast_mut().cast());
        // SAFETY: both are alive, and as large as that.
        unsafe {
            if in_pieces {
                to.staged_copy_raw(into, &from, out, size)
            } else {
                to.peer_copy_raw(into, &from, out, size)
            }
        }
        .unwrap();
        let (memory, source) = (memory.as_slice().unwrap(), source.as_slice().unwrap());
        assert_eq!(memory[..size], source[..size]);
        assert!(memory[size..].iter().all(|&byte| byte == 255));
    };
    for size in [1, 4096, 4 << 20, SIZE] {
        copy(size, false);
        copy(size, true);
    }
    copy(0, false);
}

#[test]
fn it_comes_directly_where_the_device_reaches_it() {
    let (there, device, from) = place();
    let (here, _, to) = place();
    let source = counted(&there, &device);
    let memory = SharedMemory::new(&here, &device, SIZE).unwrap();
    let (out, into) = (source.as_ptr().cast(), memory.as_ptr().cast_mut().cast());
    // SAFETY: both are alive until the copy is done, and as large as that.
    let event = unsafe { to.begin_peer_copy_raw(into, &from, out, SIZE) }
        .unwrap()
        .unwrap();
    assert!(event.wait(None).unwrap());
    assert_eq!(memory.as_slice().unwrap(), source.as_slice().unwrap());
}

#[test]
fn it_comes_after_what_the_other_queue_was_given() {
    let (there, device, from) = place();
    let (here, _, to) = place();
    let source = counted(&there, &device);
    let memory = SharedMemory::new(&here, &device, SIZE).unwrap();
    let gate = from
        .host_task(|| std::thread::sleep(Duration::from_millis(30)))
        .unwrap();
    from.barrier(&[gate]).unwrap();
    let (out, into) = (
        source.as_ptr().cast_mut().cast(),
        memory.as_ptr().cast_mut().cast(),
    );
    // SAFETY: both are alive until this returns, and as large as that.
    unsafe {
        from.fill_raw(out, 7, SIZE, Completion::Event).unwrap();
        to.peer_copy_raw(into, &from, out, SIZE).unwrap();
    }
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 7));
}
