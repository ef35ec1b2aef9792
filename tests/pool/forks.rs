//! Pools and blocks that a fork's child inherits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zeusm::pool::{Lookup, Options, Pool, lookup};

use crate::provider::Tracker;

const MIB: usize = 1 << 20;

/// Runs `check` in a child process; whether it succeeded.
fn in_child(check: impl FnOnce()) -> bool {
    // SAFETY: the child runs the closure and exits without running the parent's destructors.
    match unsafe { libc::fork() } {
        0 => {
            let answer = catch_unwind(AssertUnwindSafe(check));
            // SAFETY: as above.
            unsafe { libc::_exit(i32::from(answer.is_err())) }
        }
        child => {
            assert!(child > 0);
            let mut status = 0;
            // SAFETY: the process is a child that has not been waited for yet.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            status == 0
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri does not fork")]
fn a_child_can_drop_inherited_blocks_and_has_an_empty_pool() {
    let tracker = Tracker::default();
    let pool = Pool::new(tracker.provider(), Options::default());
    let kept = pool.allocate(1000, 0).unwrap();
    let mut inherited = Some(pool.allocate(1000, 0).unwrap());
    let large = pool.allocate(3 * MIB, 0).unwrap();
    let before = pool.statistics();
    // Threads that hold the pool's locks most of the time, so that the child inherits some of them locked.
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let (pool, stop) = (pool.clone(), Arc::clone(&stop));
            std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    drop(pool.allocate(1000, 0));
                    pool.trim(0);
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let (inherited, pool, large) = (&mut inherited, &pool, &large);
        assert!(in_child(|| {
            let block = inherited.take().unwrap();
            let address = block.address().addr().get();
            assert_eq!(lookup(address), Lookup::Allocated(address..address + 1000));
            drop(block);
            assert_eq!(lookup(address), Lookup::Free);
            let address = large.address().addr().get();
            assert_eq!(
                lookup(address),
                Lookup::Allocated(address..address + 3 * MIB)
            );
            assert_eq!(pool.trim(0), 0);
            assert_eq!(pool.statistics().total_bytes, 0);
        }));
    }
    stop.store(true, Ordering::SeqCst);
    for thread in busy {
        thread.join().unwrap();
    }
    let after = pool.statistics();
    assert_eq!(after.used_bytes, before.used_bytes);
    // The tracker's own lock is free now, so a child can allocate.
    assert!(in_child(|| {
        let block = pool.allocate(100, 0).unwrap();
        assert_eq!(block.size(), 100);
        let address = block.address().addr().get();
        assert_eq!(lookup(address), Lookup::Allocated(address..address + 100));
        assert_eq!(pool.statistics().allocations, 1);
        let other = Pool::new(Tracker::default().provider(), Options::default());
        drop(other.allocate(100, 0).unwrap());
        assert_eq!(other.statistics().allocations, 1);
    }));
    assert_eq!(pool.statistics(), after);
    drop((kept, inherited, large));
    drop(pool);
    assert_eq!(tracker.bytes(), 0);
}
