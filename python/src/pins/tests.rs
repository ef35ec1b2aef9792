#[cfg(loom)]
mod models;

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::{Close, Pins};

#[test]
fn an_unfinished_close_is_neither_open_nor_closed() {
    let pins = Pins::default();
    let Close::Begun(closing) = pins.close() else {
        panic!("nothing pins it");
    };
    assert!(pins.pin().is_err() && !pins.is_closed());
    assert!(matches!(pins.close(), Close::Pinned(1)));
    drop(closing);
    let pin = pins.pin();
    assert!(pin.is_ok() && matches!(pins.close(), Close::Pinned(1)));
    drop(pin);
    let Close::Begun(closing) = pins.close() else {
        panic!("nothing pins it");
    };
    closing.finish();
    assert!(pins.is_closed() && pins.pin().is_err());
    assert!(matches!(pins.close(), Close::Closed));
}

#[test]
fn one_thread_closes_and_the_others_see_it_freed() {
    for _ in 0..2000 {
        let (pins, freed) = (Pins::default(), AtomicU32::new(0));
        let close = |is_shared: bool| match pins.close() {
            // The memory is shared, so the object stays open.
            Close::Begun(closing) if is_shared => drop(closing),
            Close::Begun(closing) => {
                freed.fetch_add(1, Ordering::SeqCst);
                closing.finish();
            }
            Close::Closed => assert_eq!(freed.load(Ordering::SeqCst), 1),
            Close::Pinned(_) => {}
        };
        thread::scope(|scope| {
            scope.spawn(|| close(true));
            scope.spawn(|| close(false));
            scope.spawn(|| close(false));
        });
        close(false);
        assert!(pins.is_closed());
        assert_eq!(freed.into_inner(), 1);
    }
}
