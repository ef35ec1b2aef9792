//! Peer copies between contexts: direct ones, and staged ones as between devices without peer access.
#![allow(clippy::unwrap_used)]

use std::env;
use std::process::Command;
use std::time::Duration;

use zeusm::{Completion, Context, Device, Error, Event, HostMemory, Queue, Runtime, SharedMemory};

/// Not a multiple of the staging chunk.
const SIZE: usize = (9 << 20) + 5;

fn setup() -> (Context, Device, Queue) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    (context, device, queue)
}

/// Set in the process whose devices have no access to each other's memory.
const STAGED: &str = "ZEUSM_TEST_STAGED";

/// As [`setup`], of the device that is copied from: another one where copies are staged.
fn setup_far() -> (Context, Device, Queue) {
    let (context, mut device, _) = setup();
    if env::var_os(STAGED).is_some() {
        device = Runtime::get().unwrap().devices()[1].clone();
        assert!(!device.can_access(&setup().1).unwrap());
    }
    let queue = Queue::new(&context, &device).unwrap();
    (context, device, queue)
}

#[test]
fn all_of_this_holds_without_peer_access() {
    if env::var_os(STAGED).is_some() || !setup().1.name().starts_with("zeusm CPU runtime") {
        return;
    }
    let devices = [("ZEUSM_CPU_DEVICES", "2"), ("ZEUSM_CPU_PEER_ACCESS", "0")];
    let mut command = Command::new(env::current_exe().unwrap());
    let output = command.envs(devices).env(STAGED, "1").output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Memory with a byte pattern by index.
fn with_pattern(context: &Context, device: &Device) -> SharedMemory {
    let mut memory = SharedMemory::new(context, device, SIZE).unwrap();
    for (index, byte) in memory.as_mut_slice().unwrap().iter_mut().enumerate() {
        *byte = (index % 251) as u8;
    }
    memory
}

#[test]
fn a_device_can_access_itself() {
    let (_, device, _) = setup();
    assert!(device.can_access(&device).unwrap());
}

#[test]
fn memory_of_another_context_is_copied() {
    let (there, far, from) = setup_far();
    let (here, device, to) = setup();
    let source = with_pattern(&there, &far);
    let copy = |size| {
        let mut memory = SharedMemory::new(&here, &device, SIZE).unwrap();
        memory.as_mut_slice().unwrap().fill(255);
        let (out, into) = (source.as_ptr().cast(), memory.as_ptr().cast_mut().cast());
        // SAFETY: both are alive, and have at least `size` bytes.
        unsafe { to.peer_copy_raw(into, &from, out, size) }.unwrap();
        let (memory, source) = (memory.as_slice().unwrap(), source.as_slice().unwrap());
        assert_eq!(memory[..size], source[..size]);
        assert!(memory[size..].iter().all(|&byte| byte == 255));
    };
    for size in [1, 4096, 4 << 20, SIZE] {
        copy(size);
    }
    copy(0);
}

#[test]
fn the_copy_is_direct_with_peer_access() {
    let (there, device, from) = setup();
    let (here, _, to) = setup();
    let source = with_pattern(&there, &device);
    let memory = SharedMemory::new(&here, &device, SIZE).unwrap();
    let (out, into) = (source.as_ptr().cast(), memory.as_ptr().cast_mut().cast());
    // SAFETY: both are alive until the copy is complete, and have `SIZE` bytes.
    let event = unsafe { to.peer_copy_async_raw(into, &from, out, SIZE) }
        .unwrap()
        .unwrap();
    assert!(event.wait(None).unwrap());
    assert_eq!(memory.as_slice().unwrap(), source.as_slice().unwrap());
}

#[test]
fn the_copy_starts_after_operations_of_the_other_queue() {
    let (there, device, from) = setup();
    let (here, _, to) = setup();
    let source = with_pattern(&there, &device);
    let memory = SharedMemory::new(&here, &device, SIZE).unwrap();
    let delay = from
        .host_task(|| std::thread::sleep(Duration::from_millis(30)))
        .unwrap();
    from.barrier(&[delay]).unwrap();
    let (out, into) = (
        source.as_ptr().cast_mut().cast(),
        memory.as_ptr().cast_mut().cast(),
    );
    // SAFETY: both are alive until this returns, and have `SIZE` bytes.
    unsafe {
        from.fill_raw(out, 7, SIZE, Completion::Event).unwrap();
        to.peer_copy_raw(into, &from, out, SIZE).unwrap();
    }
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 7));
}

/// The staged copy read the source at once, and the direct one did if the wait list is that of the other queue.
#[test]
fn the_copy_starts_after_both_wait_lists_and_operations_of_its_own_queue() {
    let (context, device, idle) = setup();
    let (_, far, _) = setup_far();
    let far_queue = || Queue::new(&context, &far).unwrap();
    let far_idle = far_queue();
    let delayed_fill = |queue: &Queue, memory: &HostMemory| {
        let delay = queue.host_task(|| std::thread::sleep(Duration::from_millis(30)));
        let after = queue.depends_on(&[delay.unwrap()]).unwrap();
        let out = memory.as_ptr().cast_mut().cast();
        // SAFETY: the memory is alive until the copy is complete, which waits for this.
        unsafe { after.fill_raw(out, 7, SIZE, Completion::Event) }
            .unwrap()
            .unwrap()
    };
    let after = |queue: Queue, filled: Event| queue.depends_on(&[filled]).unwrap();
    let queue = || Queue::new(&context, &device).unwrap();
    // The queues of the destination and of the source.
    type Queues<'a> = &'a dyn Fn(&Queue, Event) -> [Queue; 2];
    let dependent: [Queues<'_>; 3] = [
        &|_, filled| [after(queue(), filled), far_idle.clone()],
        &|filling, _| [filling.clone(), far_idle.clone()],
        &|_, filled| [idle.clone(), after(far_queue(), filled)],
    ];
    for dependent in dependent {
        // Host memory, which the queues of both devices can fill.
        let source = HostMemory::new(&context, &device, SIZE).unwrap();
        let memory = SharedMemory::new(&context, &device, SIZE).unwrap();
        let filling = queue();
        let filled = delayed_fill(&filling, &source);
        let [to, from] = dependent(&filling, filled);
        let (out, into) = (source.as_ptr().cast(), memory.as_ptr().cast_mut().cast());
        // SAFETY: both are alive until this returns, and have `SIZE` bytes.
        unsafe { to.peer_copy_raw(into, &from, out, SIZE).unwrap() };
        assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 7));
    }
}

/// The copy was refused with the error of the other operation.
#[test]
fn an_operation_of_the_other_queue_that_was_not_executed_orders_nothing() {
    let (there, device, from) = setup();
    let (here, _, to) = setup();
    let failed = from.try_host_task(|| {
        std::thread::sleep(Duration::from_millis(30));
        Err(Error::NullPointer)
    });
    let behind = from.barrier(&[failed.unwrap()]).unwrap();
    behind.wait(None).unwrap_err();
    let source = with_pattern(&there, &device);
    let memory = SharedMemory::new(&here, &device, SIZE).unwrap();
    let (out, into) = (source.as_ptr().cast(), memory.as_ptr().cast_mut().cast());
    // SAFETY: both are alive until this returns, and have `SIZE` bytes.
    unsafe { to.peer_copy_raw(into, &from, out, SIZE) }.unwrap();
    assert_eq!(memory.as_slice().unwrap(), source.as_slice().unwrap());
}

/// The direct copy was executed, and copied what was in the source before.
#[test]
fn a_copy_behind_an_operation_of_the_other_queue_that_fails_is_not_executed() {
    let (there, far, from) = setup_far();
    let (here, device, to) = setup();
    let source = with_pattern(&there, &far);
    let mut memory = SharedMemory::new(&here, &device, SIZE).unwrap();
    memory.as_mut_slice().unwrap().fill(255);
    let failed = from.try_host_task(|| {
        std::thread::sleep(Duration::from_millis(30));
        Err(Error::NullPointer)
    });
    from.barrier(&[failed.unwrap()]).unwrap();
    let (out, into) = (source.as_ptr().cast(), memory.as_ptr().cast_mut().cast());
    // SAFETY: both are alive until this returns, and have `SIZE` bytes.
    let copied = unsafe { to.peer_copy_raw(into, &from, out, SIZE) };
    let error = copied.unwrap_err();
    assert!(error.to_string().contains("not executed"), "{error}");
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 255));
}

#[test]
fn memory_of_another_context_is_refused() {
    let (context, device, queue) = setup();
    let other = Context::new(device.driver()).unwrap();
    let mut own = SharedMemory::new(&context, &device, 64).unwrap();
    let mut theirs = SharedMemory::new(&other, &device, 64).unwrap();
    let refused = [
        queue.copy(&mut own, &theirs),
        queue.copy(&mut theirs, &own),
        queue.fill(&mut theirs, 1),
        queue.write(&mut theirs, &[1; 64]),
        queue.read(&theirs, &mut [0; 64]),
        queue
            .fill_async(SharedMemory::new(&other, &device, 64).unwrap(), 1)
            .map(drop),
    ];
    for answer in refused {
        let error = answer.unwrap_err();
        assert!(
            matches!(error, Error::OtherContext { size: 64, .. }),
            "{error}"
        );
        assert!(error.to_string().contains("another context"), "{error}");
    }
    // Memory without bytes is not checked.
    queue
        .fill(&mut SharedMemory::new(&other, &device, 0).unwrap(), 1)
        .unwrap();
    queue
        .copy(&mut own, &SharedMemory::new(&context, &device, 64).unwrap())
        .unwrap();
}
