//! Models of pinning and closing a memory object.

use zeusm_process::tests::loom::cell::UnsafeCell;
use zeusm_process::tests::loom::sync::Arc;
use zeusm_process::tests::loom::thread;
use zeusm_process::tests::model;

use crate::pins::{Close, Pins};

#[test]
fn memory_is_freed_once_after_its_pins() {
    model(
        "pins: memory is freed once, after its pins",
        None,
        freed_once,
    );
}

#[test]
fn an_object_that_stays_open_can_be_pinned() {
    model(
        "pins: an object that stays open can be pinned",
        None,
        stays_open,
    );
}

/// A memory object. Loom checks the ordering of accesses to `freed`.
#[derive(Default)]
struct Object {
    pins: Pins,
    freed: UnsafeCell<bool>,
}

impl Object {
    fn touch(&self) {
        if let Ok(_pin) = self.pins.pin() {
            // SAFETY: the pin prevents the free. Loom reports a concurrent write.
            self.freed.with(|freed| assert!(unsafe { !*freed }));
        }
    }

    fn close(&self) {
        match self.pins.close() {
            Close::Begun(closing) => {
                // SAFETY: closing succeeds once, without pins. Loom reports a concurrent access.
                self.freed.with_mut(|freed| unsafe {
                    assert!(!*freed);
                    *freed = true;
                });
                closing.finish();
            }
            // SAFETY: the free happens before a thread observes the closed state. Loom reports a concurrent write.
            Close::Closed => self.freed.with(|freed| assert!(unsafe { *freed })),
            Close::Pinned(pins) => assert!(pins > 0),
        }
    }
}

fn freed_once() {
    let object = Arc::new(Object::default());
    let [user, closer] = [Object::touch, Object::close].map(|act| {
        let object = Arc::clone(&object);
        thread::spawn(move || act(&object))
    });
    object.close();
    user.join().expect("no panic");
    closer.join().expect("no panic");
    object.close();
    assert!(object.pins.is_closed() && object.pins.pin().is_err());
}

fn stays_open() {
    let object = Arc::new(Object::default());
    let other = Arc::clone(&object);
    let closer = thread::spawn(move || {
        // The close is not finished, so the object stays open.
        drop(other.pins.close());
    });
    object.touch();
    closer.join().expect("no panic");
    assert!(object.pins.pin().is_ok());
}
