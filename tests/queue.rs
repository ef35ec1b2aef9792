//! Copies and fills: results, order, and the lifetime of operands.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use zeusm::usm::{Allocation, Kind};
use zeusm::{
    Completion, Context, Device, DeviceMemory, Error, HostMemory, Memory, Queue, Rows, Runtime,
    SharedMemory, UsmKind, sys,
};

/// Large enough to be still in flight when the call returns.
const LARGE: usize = 64 << 20;

fn setup() -> (Context, Device, Queue) {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    (context, device, queue)
}

fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index * 31 % 251) as u8).collect()
}

fn round_trip<A: Kind, B: Kind>(size: usize) {
    let (context, device, queue) = setup();
    let mut first = Memory::<A>::new(&context, &device, size).unwrap();
    let mut second = Memory::<B>::new(&context, &device, size).unwrap();
    let bytes = pattern(size);
    queue.write(&mut first, &bytes).unwrap();
    queue.copy(&mut second, &first).unwrap();
    let mut back = vec![0; size];
    queue.read(&second, &mut back).unwrap();
    assert_eq!(back, bytes);
}

#[test]
fn bytes_survive_copies_between_all_kinds() {
    use zeusm::usm::{Device, Host, Shared};
    for size in [0, 1, 64, 4097, 3 << 20] {
        round_trip::<Host, Host>(size);
        round_trip::<Host, Device>(size);
        round_trip::<Host, Shared>(size);
        round_trip::<Device, Host>(size);
        round_trip::<Device, Device>(size);
        round_trip::<Device, Shared>(size);
        round_trip::<Shared, Host>(size);
        round_trip::<Shared, Device>(size);
        round_trip::<Shared, Shared>(size);
    }
}

#[test]
fn fills_set_exactly_their_range() {
    let (context, device, queue) = setup();
    let mut memory = SharedMemory::new(&context, &device, 1001).unwrap();
    for value in [0, 1, 0x80, 0xff] {
        queue.fill(&mut memory, value).unwrap();
        assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == value));
    }
    memory.as_mut_slice().unwrap().fill(9);
    // SAFETY: the range is within the memory, which is accessed after the fill is complete.
    let event = unsafe {
        queue.fill_raw(
            memory.as_ptr().wrapping_add(10) as *mut _,
            3,
            20,
            Completion::Event,
        )
    }
    .unwrap();
    queue.finish(&event.unwrap(), "fill", 20).unwrap();
    let bytes = memory.as_slice().unwrap();
    assert_eq!(bytes.iter().filter(|&&byte| byte == 3).count(), 20);
    assert_eq!((bytes[9], bytes[10], bytes[29], bytes[30]), (9, 3, 3, 9));
}

#[test]
fn different_lengths_are_refused_before_anything_is_copied() {
    let (context, device, queue) = setup();
    let mut memory = HostMemory::new(&context, &device, 8).unwrap();
    memory.as_mut_slice().unwrap().fill(1);
    let error = queue.write(&mut memory, &[2; 9]).unwrap_err();
    assert!(matches!(
        error,
        Error::Length {
            source_size: 9,
            destination_size: 8,
            ..
        }
    ));
    assert!(queue.read(&memory, &mut [0; 7]).is_err());
    let other = DeviceMemory::new(&context, &device, 9).unwrap();
    assert!(queue.copy(&mut memory, &other).is_err());
    assert_eq!(memory.as_slice().unwrap(), [1; 8]);
}

#[test]
fn operations_are_executed_in_order() {
    let (context, device, queue) = setup();
    let mut memory = DeviceMemory::new(&context, &device, LARGE).unwrap();
    let to = memory.as_ptr().cast_mut();
    for value in 0..20 {
        // SAFETY: the memory outlives the operations, which are waited for below.
        unsafe { queue.fill_raw(to.cast(), value, LARGE, Completion::Event) }.unwrap();
        // SAFETY: as above, the range is within the memory.
        unsafe { queue.fill_raw(to.cast(), value ^ 0xff, 16, Completion::Event) }.unwrap();
    }
    queue.wait().unwrap();
    let mut bytes = vec![0; LARGE];
    queue.read(&memory, &mut bytes).unwrap();
    assert!(bytes[..16].iter().all(|&byte| byte == 19 ^ 0xff));
    assert!(bytes[16..].iter().all(|&byte| byte == 19));
    queue.fill(&mut memory, 1).unwrap();
}

#[test]
fn an_operation_returns_its_operands() {
    let (context, device, queue) = setup();
    let source = SharedMemory::new(&context, &device, LARGE).unwrap();
    let destination = DeviceMemory::new(&context, &device, LARGE).unwrap();
    let source = queue.fill_async(source, 7).unwrap().wait().unwrap();
    let operation = queue.copy_async(destination, source).unwrap();
    let (destination, _source) = operation.wait().unwrap();
    let (_, bytes) = queue
        .read_async(destination, vec![0; LARGE])
        .unwrap()
        .wait()
        .unwrap();
    assert!(bytes.iter().all(|&byte| byte == 7));
}

#[test]
fn operations_on_no_bytes_are_complete_at_once() {
    let (context, device, queue) = setup();
    let memory = HostMemory::new(&context, &device, 0).unwrap();
    let operation = queue.fill_async(memory, 1).unwrap();
    assert!(operation.is_complete().unwrap());
    let memory = operation.wait().unwrap();
    queue
        .write_async(memory, Vec::new())
        .unwrap()
        .wait()
        .unwrap();
}

#[test]
fn the_operands_of_a_dropped_operation_are_retained_until_it_is_complete() {
    let (context, device, queue) = setup();
    let memory = DeviceMemory::new(&context, &device, LARGE).unwrap();
    let pool = context.pool(&device, UsmKind::Device).unwrap();
    let operation = queue.fill_async(memory, 1).unwrap();
    let event = operation.event().clone();
    drop(operation);
    if !event.is_complete().unwrap() {
        // It was still in flight after the drop, so the drop must not have freed the memory.
        let live = pool.statistics().used_count;
        assert!(live == 1 || event.is_complete().unwrap());
    }
    assert!(event.wait(None).unwrap());
    queue.wait().unwrap();
    assert_eq!(pool.statistics().used_count, 0);
}

#[test]
fn waiting_honours_its_timeout() {
    let (context, device, queue) = setup();
    let memory = DeviceMemory::new(&context, &device, 4 * LARGE).unwrap();
    let mut operation = queue.fill_async(memory, 1).unwrap();
    loop {
        match operation.wait_timeout(Duration::from_micros(50)).unwrap() {
            Ok(memory) => break assert_eq!(memory.size(), 4 * LARGE),
            Err(again) => operation = again,
        }
    }
}

#[test]
fn retained_operands_are_dropped_when_the_event_is_complete() {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, LARGE).unwrap();
    let gone = Arc::new(AtomicBool::new(false));
    // SAFETY: the memory outlives the fill, which is waited for.
    let event = unsafe {
        queue.fill_raw(
            memory.as_ptr().cast_mut().cast(),
            5,
            LARGE,
            Completion::Event,
        )
    }
    .unwrap();
    queue.retain(&event.unwrap(), Flag(Arc::clone(&gone)));
    queue.wait().unwrap();
    assert!(gone.load(Ordering::SeqCst));
    assert_eq!(memory.as_slice().unwrap()[LARGE - 1], 5);
}

#[test]
fn threads_share_a_queue() {
    let (context, device, queue) = setup();
    std::thread::scope(|scope| {
        for value in 0..8u8 {
            let (queue, context, device) = (&queue, &context, &device);
            scope.spawn(move || {
                for _ in 0..200 {
                    let mut memory = SharedMemory::new(context, device, 4096).unwrap();
                    queue.fill(&mut memory, value).unwrap();
                    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == value));
                }
            });
        }
    });
}

/// The objects of a small program, to be dropped in any order.
enum Part {
    Context(Context),
    Queue(Queue),
    Memory(SharedMemory),
    Operation(zeusm::Operation<DeviceMemory>),
    Event(zeusm::Event),
}

#[test]
fn objects_may_be_dropped_in_any_order() {
    const PARTS: usize = 5;
    let mut orders = vec![Vec::new()];
    for part in 0..PARTS {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..=order.len()).map(move |position| {
                    let mut longer = order.clone();
                    longer.insert(position, part);
                    longer
                })
            })
            .collect();
    }
    assert_eq!(orders.len(), 120);
    for order in orders {
        let (context, device, queue) = setup();
        let memory = SharedMemory::new(&context, &device, 4096).unwrap();
        let large = DeviceMemory::new(&context, &device, 1 << 20).unwrap();
        let operation = queue.fill_async(large, 1).unwrap();
        let event = operation.event().clone();
        let mut parts = [
            Some(Part::Context(context)),
            Some(Part::Queue(queue)),
            Some(Part::Memory(memory)),
            Some(Part::Operation(operation)),
            Some(Part::Event(event)),
        ];
        for part in order {
            match parts[part].take() {
                Some(Part::Context(context)) => drop(context),
                Some(Part::Queue(queue)) => drop(queue),
                Some(Part::Memory(memory)) => drop(memory),
                Some(Part::Operation(operation)) => drop(operation),
                Some(Part::Event(event)) => drop(event),
                None => unreachable!("each part is dropped once"),
            }
        }
    }
}

#[test]
fn a_spin_wait_sees_the_completion_or_returns_an_event() {
    let (context, device, queue) = setup();
    let small = SharedMemory::new(&context, &device, 64).unwrap();
    let first = small.as_ptr().cast_mut().cast();
    assert!(queue.is_idle());
    for value in 1..10 {
        // SAFETY: the memory outlives the fill, which is complete when there is no event.
        let event = unsafe { queue.fill_raw(first, value, 64, Completion::SpinWait) }.unwrap();
        // Before specification 1.6 of Level Zero, there is always an event.
        if let Some(event) = event {
            queue.finish(&event, "fill", 64).unwrap();
        }
        assert!(queue.is_idle());
        assert!(small.as_slice().unwrap().iter().all(|&byte| byte == value));
    }
    let (release, released) = std::sync::mpsc::channel::<()>();
    let gate = queue
        .host_task(move || {
            let _ = released.recv();
        })
        .unwrap();
    queue.barrier(&[gate]).unwrap();
    assert!(!queue.is_idle());
    // SAFETY: the memory outlives the fill, which is waited for.
    let event = unsafe { queue.fill_raw(first, 77, 64, Completion::SpinWait) }.unwrap();
    let event = event.expect("it waits for the host task");
    assert!(!event.is_complete().unwrap());
    release.send(()).unwrap();
    queue.finish(&event, "fill", 64).unwrap();
    assert!(small.as_slice().unwrap().iter().all(|&byte| byte == 77));
    // The thread that has submitted the fill may not have returned from that yet.
    queue.wait().unwrap();
    assert!(queue.is_idle());
}

#[test]
fn a_spin_wait_that_times_out_returns_an_event() {
    let (context, device, queue) = setup();
    let memory = SharedMemory::new(&context, &device, LARGE).unwrap();
    let first = memory.as_ptr().cast_mut().cast();
    let fill = |value, completion| {
        // SAFETY: the memory outlives the fills, which are waited for.
        unsafe { queue.fill_raw(first, value, LARGE, completion) }.unwrap()
    };
    for value in 1..5 {
        if let Some(event) = fill(value, Completion::SpinWait) {
            queue.finish(&event, "fill", LARGE).unwrap();
        }
        assert_eq!(memory.as_slice().unwrap()[LARGE - 1], value);
        assert!(queue.is_idle());
        // Another operation may follow at once.
        fill(100, Completion::SpinWait);
        let event = fill(value, Completion::Event).unwrap();
        assert!(event.wait(Some(Duration::from_secs(30))).unwrap());
        assert_eq!(memory.as_slice().unwrap()[LARGE - 1], value);
    }
}

#[test]
fn spin_waits_of_many_threads_are_independent() {
    let (context, device, queue) = setup();
    std::thread::scope(|scope| {
        for number in 0..4_u8 {
            let (context, device, queue) = (&context, &device, &queue);
            scope.spawn(move || {
                let mut memory = DeviceMemory::new(context, device, 256).unwrap();
                let mut back = [0; 256];
                for round in 0..500_u32 {
                    let value = number * 60 + (round % 60) as u8;
                    queue.fill(&mut memory, value).unwrap();
                    queue.read(&memory, &mut back).unwrap();
                    assert_eq!(back, [value; 256]);
                }
            });
        }
    });
    assert!(queue.is_idle());
}

#[test]
fn the_error_of_an_operation_describes_it() {
    let (context, device, queue) = setup();
    let memory = Allocation::new(&context, &device, UsmKind::Device, 64, 0).unwrap();
    // SAFETY: a null pointer is refused before Level Zero dereferences it.
    let error = unsafe { queue.copy_raw(memory.as_ptr(), std::ptr::null(), 64, Completion::Event) }
        .unwrap_err();
    let message = error.to_string();
    for part in [
        "copy",
        "64 bytes",
        device.name(),
        "ZE_RESULT_ERROR_INVALID_NULL_POINTER",
    ] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    // The queue stays usable.
    // SAFETY: the memory outlives the wait.
    let event = unsafe { queue.fill_raw(memory.as_ptr(), 1, 64, Completion::Event) }
        .unwrap()
        .unwrap();
    assert!(event.wait(None).unwrap());
}

#[test]
fn null_pointers_are_refused_without_a_call_of_the_driver() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    let memory = SharedMemory::new(&context, &device, 64).unwrap();
    let (here, null) = (memory.as_ptr().cast_mut().cast(), std::ptr::null_mut());
    let refused = |answer: zeusm::Result<Option<zeusm::Event>>| {
        let error = answer.unwrap_err();
        let Error::Operation {
            cause, size: 64, ..
        } = &error
        else {
            panic!("{error}");
        };
        assert!(matches!(**cause, Error::NullPointer), "{error}");
    };
    // SAFETY: no memory is accessed, as the null pointers are refused.
    unsafe {
        refused(queue.copy_raw(here, null, 64, Completion::Event));
        refused(queue.copy_raw(null, here, 64, Completion::Event));
        refused(queue.fill_raw(null, 1, 64, Completion::Event));
        refused(queue.prefetch_raw(null, 64).map(Some));
        // With no bytes, null pointers are allowed.
        queue.prefetch_raw(null, 0).unwrap();
        assert!(
            queue
                .copy_raw(null, null, 0, Completion::Event)
                .unwrap()
                .is_none()
        );
    }
    // The queue stays usable.
    queue.wait().unwrap();
}

#[test]
fn an_operation_without_a_wait_list_retains_nothing() {
    let (context, device, queue) = setup();
    let memory = DeviceMemory::new(&context, &device, LARGE).unwrap();
    let to = memory.as_ptr().cast_mut().cast();
    // SAFETY: the memory outlives the fill, which is waited for.
    let event = unsafe { queue.fill_raw(to, 1, LARGE, Completion::Event) }
        .unwrap()
        .unwrap();
    assert!(queue.is_reclaimed());
    assert!(event.wait(None).unwrap());
}

/// Copies `size` (bytes of a row, rows, slices) between rows of these pitches, for rows and slices.
fn copy_rows(from: [usize; 2], to: [usize; 2], size: [usize; 3]) -> zeusm::Result<Vec<u8>> {
    let (context, device, queue) = setup();
    let mut source = SharedMemory::new(&context, &device, 1000).unwrap();
    let mut destination = SharedMemory::new(&context, &device, 1000).unwrap();
    source
        .as_mut_slice()
        .unwrap()
        .copy_from_slice(&pattern(1000));
    destination.as_mut_slice().unwrap().fill(255);
    let from = Rows {
        first: source.as_ptr().cast(),
        pitch: from[0],
        slice_pitch: from[1],
    };
    let to = Rows {
        first: destination.as_ptr().cast_mut().cast(),
        pitch: to[0],
        slice_pitch: to[1],
    };
    // SAFETY: the rows are within the memory, which outlives the copy, or they are refused.
    let event = unsafe { queue.copy_rows_raw(to, from, size, Completion::Event) }?;
    queue.finish(&event.unwrap(), "copy", size.iter().product())?;
    Ok(destination.as_slice().unwrap().to_vec())
}

#[test]
fn rows_are_copied_at_their_pitches_without_the_gaps() {
    // With one slice, the slice pitch is irrelevant.
    for (from, to, size) in [
        ([9, 50], [7, 40], [5, 4, 3]),
        ([9, usize::MAX], [7, 1 << 40], [5, 4, 1]),
        ([5, 20], [11, 100], [5, 4, 2]),
    ] {
        let mut expected = vec![255; 1000];
        for slice in 0..size[2] {
            for row in 0..size[1] {
                // The first slice begins at 0 for any pitch.
                let at = |[pitch, slice_pitch]: [usize; 2]| row * pitch + slice * slice_pitch;
                let bytes = &pattern(1000)[at(from)..][..size[0]];
                expected[at(to)..][..size[0]].copy_from_slice(bytes);
            }
        }
        let copied = copy_rows(from, to, size).unwrap();
        assert_eq!(copied, expected, "{size:?} from {from:?} to {to:?}");
    }
}

#[test]
fn sizes_beyond_level_zeros_region_copies_are_refused() {
    let large = 1 << 32;
    for (from, to, size) in [
        ([5, 5], [5, 5], [large, 1, 1]),
        ([5, 5], [5, 5], [1, large, 1]),
        ([5, 5], [5, 5], [1, 1, large]),
        ([large, 5], [5, 5], [5, 2, 1]),
        ([5, 5], [large, 5], [5, 2, 1]),
        ([5, large], [5, 5], [5, 1, 2]),
        ([5, 5], [5, large], [5, 1, 2]),
    ] {
        let result = copy_rows(from, to, size).map_err(|error| error.result());
        assert_eq!(result, Err(Some(sys::ZE_RESULT_ERROR_INVALID_SIZE)));
    }
}

#[test]
fn a_queue_equals_its_clones_only() {
    let (context, device, queue) = setup();
    assert_eq!(queue, queue.clone());
    assert_ne!(queue, Queue::new(&context, &device).unwrap());
}

#[test]
fn a_queue_that_was_not_used_has_nothing_to_wait_for() {
    let (_context, _device, queue) = setup();
    queue.drop_complete();
    queue.reclaim();
    queue.wait().unwrap();
    assert!(queue.is_idle() && queue.is_reclaimed());
}

#[test]
fn a_blocking_operation_follows_its_wait_list() {
    let (context, device, queue) = setup();
    let is_over = Arc::new(AtomicBool::new(false));
    let task = {
        let is_over = Arc::clone(&is_over);
        let other = Queue::new(&context, &device).unwrap();
        let task = other.host_task(move || {
            std::thread::sleep(Duration::from_millis(20));
            is_over.store(true, Ordering::Release);
        });
        task.unwrap()
    };
    let mut memory = SharedMemory::new(&context, &device, 1 << 20).unwrap();
    let dependent = queue.depends_on(&[task]).unwrap();
    dependent.fill(&mut memory, 3).unwrap();
    assert!(is_over.load(Ordering::Acquire));
    assert!(memory.as_slice().unwrap().iter().all(|&byte| byte == 3));
}
