//! Fills of all sizes: on a discrete device small ones are copies from the host.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc;

use zeusm::{Completion, Context, DeviceMemory, Queue, Runtime};

#[path = "support/child.rs"]
mod child;

/// The bytes before and after the filled range.
const MARGIN: usize = 64;
const SIZES: [usize; 7] = [0, 1, 64, 4097, 16 << 10, (16 << 10) + 1, 100_000];

#[test]
fn fills_set_their_bytes_only() {
    for is_discrete in ["0", "1"] {
        let mut command = child::command("fills");
        command.env("ZEUSM_CPU_DISCRETE", is_discrete);
        child::run(command);
    }
}

#[test]
#[ignore = "run by fills_set_their_bytes_only"]
fn fills() {
    let device = Runtime::get().unwrap().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    for (size, value) in SIZES.into_iter().zip(1..) {
        let mut memory = DeviceMemory::new(&context, &device, size + 2 * MARGIN).unwrap();
        let mut expected = vec![100 + value; size + 2 * MARGIN];
        queue.fill(&mut memory, 100 + value).unwrap();
        let first = memory.as_ptr().cast_mut().wrapping_byte_add(MARGIN).cast();
        // SAFETY: the range is in the memory, which lives until the fill is complete.
        let fill = |value| unsafe { queue.fill_raw(first, value, size, Completion::SpinWait) };
        let check = |expected: &[u8]| {
            let mut bytes = vec![0; size + 2 * MARGIN];
            queue.read(&memory, &mut bytes).unwrap();
            assert_eq!(bytes, expected, "{size} bytes");
        };

        // On an idle queue.
        if let Some(event) = fill(value).unwrap() {
            queue.finish(&event, "fill", size).unwrap();
        }
        expected[MARGIN..MARGIN + size].fill(value);
        check(&expected);

        // Behind an operation that waits for the host.
        let (release, released) = mpsc::channel::<()>();
        let task = queue.host_task(move || _ = released.recv()).unwrap();
        let before = queue.barrier(&[task]).unwrap();
        let event = fill(50 + value).unwrap();
        assert_eq!(event.is_none(), size == 0);
        assert!(!before.is_over());
        release.send(()).unwrap();
        queue.wait().unwrap();
        expected[MARGIN..MARGIN + size].fill(50 + value);
        check(&expected);
    }
}
