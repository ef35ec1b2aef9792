//! The times of kernels: timestamps, and timeouts of waits for them.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;

use super::launches::Setup;
use super::runtime::{call, must};

#[test]
fn a_timestamp_covers_its_kernel() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let event = runtime.events(1)[0];
    let memory = runtime.shared(&[0, 0]);
    let list = runtime.immediate(true);
    let kernel = setup.kernel("meet", 1);
    assert_eq!(runtime.set(kernel, 0, memory.as_ptr()), OK);
    let flags = [0, 1].map(|place| {
        // SAFETY: the kernel and this test access the memory, which is aligned, at once.
        unsafe { AtomicU32::from_ptr(memory.as_ptr().cast_mut().add(place)) }
    });
    let begun = Instant::now();
    let met = thread::scope(|scope| {
        // The kernel runs from before the first clock reading to after the last, on a busy machine, too.
        let meeting = scope.spawn(|| {
            while flags[0].load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            let met = Instant::now();
            thread::sleep(Duration::from_millis(20));
            let duration = met.elapsed();
            flags[1].store(1, Ordering::SeqCst);
            duration
        });
        setup.runtime.launch(list, kernel, 1, event, &[]);
        must!(runtime, zeEventHostSynchronize(event, u64::MAX));
        meeting.join().unwrap()
    });
    let elapsed = begun.elapsed();
    let mut times = sys::ze_kernel_timestamp_result_t::default();
    must!(runtime, zeEventQueryKernelTimestamp(event, &raw mut times));
    let duration = Duration::from_nanos(times.global.kernelEnd - times.global.kernelStart);
    assert!(
        met <= duration && duration <= elapsed,
        "{met:?}, {duration:?}, {elapsed:?}"
    );
}

#[test]
fn a_timeout_is_kept_while_a_kernel_runs() {
    let Some(setup) = Setup::new() else { return };
    let runtime = &setup.runtime;
    let event = runtime.events(1)[0];
    let memory = runtime.shared(&[1]);
    let list = runtime.immediate(true);
    let long = setup.long(memory);
    // On a busy machine a thread may wait longer than that, but not each time.
    let is_kept = (0..10).any(|_| {
        must!(runtime, zeEventHostReset(event));
        for _ in 0..4 {
            setup.runtime.launch(list, long, 1, ptr::null_mut(), &[]);
        }
        setup.runtime.launch(list, long, 1, event, &[]);
        let begun = Instant::now();
        let answer = call!(runtime, zeEventHostSynchronize(event, 1_000_000));
        let waited = begun.elapsed();
        must!(runtime, zeEventHostSynchronize(event, u64::MAX));
        answer == sys::ZE_RESULT_NOT_READY && waited < Duration::from_millis(60)
    });
    assert!(is_kept);
}
