use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Local, Owned};
use crate::lock::Mutex;
use crate::testing::in_child;

struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_local_is_initialised_once_in_a_process() {
    let (local, made) = (Local::new(), Cell::new(0));
    let make = || {
        made.set(made.get() + 1);
        made.get()
    };
    assert_eq!(local.get(), None);
    assert_eq!(local.get_or_init(make), &1);
    assert_eq!(local.get_or_init(make), &1);
    assert_eq!(local.get(), Some(&1));
}

#[test]
fn a_failed_initialisation_leaves_a_local_empty() {
    let local = Local::new();
    assert_eq!(local.get_or_try_init(|| Err("no")), Err::<&u8, _>("no"));
    assert_eq!(local.get(), None);
    assert_eq!(local.get_or_try_init(|| Ok::<_, &str>(3)), Ok(&3));
}

#[test]
fn a_child_has_its_own_value_though_its_parents_is_locked() {
    static LOCAL: Local<Mutex<u32>> = Local::new();
    let mut parents = LOCAL.get_or_default().lock();
    *parents = 1;
    let parent = Owned::new(());
    in_child(|| {
        assert!(parent.is_inherited());
        assert!(LOCAL.get().is_none());
        *LOCAL.get_or_default().lock() += 5;
        in_child(|| assert_eq!(*LOCAL.get_or_default().lock(), 0));
        assert_eq!(*LOCAL.get_or_default().lock(), 5);
        // A reference to the parent's value stays valid.
        assert_eq!(*parents, 1);
    });
    assert!(!parent.is_inherited());
    assert_eq!(*parents, 1);
}

#[test]
fn a_child_drops_only_its_own_values() {
    let dropped = Arc::new(AtomicU32::new(0));
    let local = Local::new();
    local.get_or_init(|| Counted(Arc::clone(&dropped)));
    let mut inherited = Some((local, Owned::new(Counted(Arc::clone(&dropped)))));
    in_child(|| {
        inherited.take();
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        let own = Local::new();
        own.get_or_init(|| Counted(Arc::clone(&dropped)));
        drop((own, Owned::new(Counted(Arc::clone(&dropped)))));
        assert_eq!(dropped.load(Ordering::Relaxed), 2);
    });
    inherited.take();
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn concurrent_initialisations_share_one_value() {
    for _ in 0..200 {
        let (local, dropped) = (Local::new(), Arc::new(AtomicU32::new(0)));
        let found: Vec<usize> = std::thread::scope(|scope| {
            let look =
                || std::ptr::from_ref(local.get_or_init(|| Counted(Arc::clone(&dropped)))).addr();
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(look)).collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect()
        });
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|&address| address == found[0]));
        // The values that were not stored have been dropped, and the stored one has not.
        let others = dropped.load(Ordering::Relaxed);
        drop(local);
        assert_eq!(dropped.load(Ordering::Relaxed), others + 1);
    }
}
