//! A model of [`Local`].

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::Local;

struct Made {
    content: UnsafeCell<u32>,
    dropped: std::sync::Arc<AtomicUsize>,
}

// SAFETY: the content is written before the value is shared.
unsafe impl Sync for Made {}

impl Drop for Made {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn concurrent_initialisations_share_one_value() {
    super::model(
        "local: concurrent initialisations share one value",
        None,
        share_one,
    );
}

fn share_one() {
    let dropped = std::sync::Arc::<AtomicUsize>::default();
    let made = std::sync::Arc::<AtomicUsize>::default();
    let local = Arc::new(Local::new());
    assert!(local.get().is_none());
    let look = |local: &Local<Made>, made: &AtomicUsize, dropped: &std::sync::Arc<AtomicUsize>| {
        let value = local.get_or_init(|| {
            made.fetch_add(1, Ordering::Relaxed);
            let content = UnsafeCell::new(0);
            // SAFETY: the value is not shared yet. Loom reports reads that are not ordered after this write.
            content.with_mut(|content| unsafe { *content = 7 });
            Made {
                content,
                dropped: std::sync::Arc::clone(dropped),
            }
        });
        // SAFETY: the content is not written after the initialisation.
        value
            .content
            .with(|content| assert_eq!(unsafe { *content }, 7));
        std::ptr::from_ref(value).addr()
    };
    let others: Vec<_> = (0..2)
        .map(|_| {
            let (local, made, dropped) = (local.clone(), made.clone(), dropped.clone());
            thread::spawn(move || look(&local, &made, &dropped))
        })
        .collect();
    let found = look(&local, &made, &dropped);
    for other in others {
        assert_eq!(other.join().expect("no panic"), found);
    }
    // All values that were not stored are dropped. The stored value is dropped with the process-local value.
    assert_eq!(
        dropped.load(Ordering::Relaxed) + 1,
        made.load(Ordering::Relaxed)
    );
    drop(local);
    assert_eq!(
        dropped.load(Ordering::Relaxed),
        made.load(Ordering::Relaxed)
    );
}
