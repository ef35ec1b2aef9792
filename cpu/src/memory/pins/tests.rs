use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use super::*;

#[test]
fn a_wait_ends_with_the_last_use() {
    let pins = PinCount::default();
    pins.wait_until_zero();
    for _ in 0..200 {
        let generation = [pins.pin(), pins.pin()];
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                pins.unpin(generation[0]);
                thread::yield_now();
                over.store(true, Ordering::SeqCst);
                pins.unpin(generation[1]);
            });
            pins.wait_until_zero();
            assert!(over.load(Ordering::SeqCst));
        });
    }
}

#[test]
fn all_waits_end_with_the_last_use() {
    let pins = PinCount::default();
    for _ in 0..200 {
        let generation = pins.pin();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| pins.wait_until_zero());
            }
            // Most of them sleep by then.
            thread::sleep(Duration::from_micros(200));
            pins.unpin(generation);
        });
    }
}

#[test]
fn a_use_from_before_a_fork_does_not_count() {
    let pins = PinCount(AtomicU64::new(start(generation() + 7) + 3));
    pins.wait_until_zero();
    let generation = pins.pin();
    pins.unpin(generation + 7);
    assert_eq!(pins.0.load(Ordering::Relaxed) & COUNT, 1);
    pins.unpin(generation);
    pins.wait_until_zero();
}
