//! Recorded operations of queues, in a process of their own, as a process has one recording.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc;

use zeusm::history::{self, Options, Place};
use zeusm::{Context, Device, Error, HostMemory, Queue, Runtime};

#[test]
fn operations_are_recorded_when_their_queue_is_dropped() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    history::start(Options::default());
    let held = HostMemory::new(&context, &device, 1000).unwrap();
    // The times are those of an event, also where the caller waits.
    let mut filled = HostMemory::new(&context, &device, 50_000).unwrap();
    queue.fill(&mut filled, 7).unwrap();
    drop(filled);
    let memories = [100_000, 200_000].map(|size| HostMemory::new(&context, &device, size).unwrap());
    let operations = memories.map(|memory| queue.fill_async(memory, 7).unwrap());
    drop(operations);
    let (release, released) = mpsc::channel::<()>();
    let failing = queue.try_host_task(move || {
        let _ = released.recv();
        Err(Error::NullPointer)
    });
    let behind = queue.depends_on(&[failing.unwrap()]).unwrap();
    let memory = HostMemory::new(&context, &device, 300_000).unwrap();
    let not_executed = behind.fill_async(memory, 7).unwrap().event().clone();
    drop(release);
    not_executed.wait(None).unwrap_err();
    let error = not_executed.timing().unwrap_err();
    assert!(matches!(error, Error::NotExecuted { .. }), "{error}");
    drop((behind, queue));
    // The function may use the history, and allocate memory.
    let uses_history =
        |place: &Place| history::recording().is_some() && place.context == context.handle().addr();
    let holder = history::holders(uses_history, 1)[0];
    assert_eq!((holder.blocks, holder.bytes), (1, 1000));
    drop(held);
    let recording = history::stop().unwrap();
    let sizes: Vec<usize> = recording.operations.iter().map(|it| it.size).collect();
    assert_eq!(sizes, [50_000, 100_000, 200_000]);
    let [_, first, second] = &recording.operations[..] else {
        unreachable!()
    };
    assert!(first.time + first.duration <= second.time);
    assert!(first.queue == second.queue && first.duration > 0);
    operations_in_flight_are_of_no_later_recording(&context, &device);
}

fn operations_in_flight_are_of_no_later_recording(context: &Context, device: &Device) {
    history::start(Options::default());
    let queue = Queue::new(context, device).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let gate = queue.try_host_task(move || {
        let _ = released.recv();
        Ok(())
    });
    let behind = queue.depends_on(&[gate.unwrap()]).unwrap();
    let fill = |size| behind.fill_async(HostMemory::new(context, device, size).unwrap(), 7);
    let early = fill(1000).unwrap().event().clone();
    assert!(history::stop().unwrap().operations.is_empty());
    history::start(Options::default());
    let late = fill(2000).unwrap().event().clone();
    drop(release);
    early.wait(None).unwrap();
    late.wait(None).unwrap();
    let recording = history::stop().unwrap();
    let sizes: Vec<usize> = recording.operations.iter().map(|it| it.size).collect();
    assert_eq!(sizes, [2000]);
}
