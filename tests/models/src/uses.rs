//! Uses of a memory object, and its closing.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use self::real::{Close, Uses};
use crate::Model;

#[path = "../../../python/src/uses.rs"]
mod real;

pub const MODELS: &[Model] = &[
    (
        "uses: memory is freed once, after its uses",
        None,
        freed_once,
    ),
    (
        "uses: an object that stays open can be used",
        None,
        stays_open,
    ),
];

/// Memory, used and freed under loom's eyes.
#[derive(Default)]
struct Object {
    uses: Uses,
    freed: UnsafeCell<bool>,
}

impl Object {
    fn touch(&self) {
        if let Ok(_use) = self.uses.guard() {
            // SAFETY: loom reports a change at the same time.
            self.freed.with(|freed| assert!(unsafe { !*freed }));
        }
    }

    fn close(&self) {
        match self.uses.close() {
            Close::Begun(closing) => {
                // SAFETY: loom reports any other access at the same time.
                self.freed.with_mut(|freed| unsafe {
                    assert!(!*freed);
                    *freed = true;
                });
                closing.finish();
            }
            // SAFETY: as in `touch`; who is told that it is closed may rely on that.
            Close::Closed => self.freed.with(|freed| assert!(unsafe { *freed })),
            Close::Used(uses) => assert!(uses > 0),
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
    assert!(object.uses.is_closed() && object.uses.guard().is_err());
}

fn stays_open() {
    let object = Arc::new(Object::default());
    let other = Arc::clone(&object);
    let closer = thread::spawn(move || {
        // It is shared otherwise, so it stays.
        drop(other.uses.close());
    });
    object.touch();
    closer.join().expect("no panic");
    assert!(object.uses.guard().is_ok());
}
