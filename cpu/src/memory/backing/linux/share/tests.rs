#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;

use super::*;

/// Programs that the process starts must not keep them protected.
#[test]
fn the_descriptor_of_a_protection_is_closed_by_exec() {
    let Ok(faults) = open() else {
        // Memory files are used from the start.
        return;
    };
    let flags = rustix::io::fcntl_getfd(&faults).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

/// Linux protects no pages that do not exist.
#[test]
fn the_first_write_to_untouched_memory_is_not_lost_while_it_moves() {
    if can_move().is_err() {
        // Memory files are used from the start.
        return;
    }
    for length in [PAGE, 16 * PAGE, HUGE_PAGE, HUGE_PAGE + PAGE, 3 * HUGE_PAGE] {
        let memory = Mapping::anonymous(length, PAGE).unwrap();
        let file = memory_file(length as u64).unwrap();
        // SAFETY: the mapping outlives the reference, and is accessed by atomics only.
        let word = unsafe { &*(memory.address() as *const AtomicU64) };
        let ready = AtomicBool::new(false);
        let protection = Protection::new(memory.pages()).unwrap();
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                ready.store(true, Ordering::Release);
                word.store(7, Ordering::Relaxed);
            });
            while !ready.load(Ordering::Acquire) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(20));
            assert!(!writer.is_finished(), "{length} bytes are not protected");
            assert_eq!(word.load(Ordering::Relaxed), 0, "of {length} bytes");
            // SAFETY: the test expects the file's bytes.
            unsafe { memory.pages().replace(&file) }.unwrap();
            drop(protection);
        });
        assert_eq!(word.load(Ordering::Relaxed), 7, "of {length} bytes");
    }
}
