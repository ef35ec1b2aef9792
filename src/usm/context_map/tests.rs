use std::sync::atomic::{AtomicBool, Ordering};
use std::{ptr, thread};

use super::*;
use crate::kind::UsmKind;
use zeusm_process::testing::in_child;

fn of(context: sys::ze_context_handle_t) -> Place {
    Place::new(UsmKind::Host, 0, context.addr())
}

#[test]
fn the_context_of_an_allocation_is_known_until_it_is_freed() {
    let contexts = [1, 2].map(ptr::without_provenance_mut);
    let base = 0x7000_0000_0000;
    assert!(!is_in_another_context(base, contexts[0]));
    register(base, 4096, of(contexts[0]), true);
    for (address, elsewhere) in [
        (base - 1, false),
        (base, true),
        (base + 4095, true),
        (base + 4096, false),
    ] {
        assert!(!is_in_another_context(address, contexts[0]));
        assert_eq!(is_in_another_context(address, contexts[1]), elsewhere);
    }
    in_child(|| {
        assert!(is_in_another_context(base, contexts[1]));
        register(base + 4096, 4096, of(contexts[1]), false);
        assert!(is_in_another_context(base + 4096, contexts[0]));
        unregister(base);
        assert!(!is_in_another_context(base, contexts[1]));
    });
    assert!(is_in_another_context(base, contexts[1]));
    unregister(base);
    assert!(!is_in_another_context(base, contexts[1]));
}

#[test]
fn a_child_does_not_inherit_the_lock() {
    let over = AtomicBool::new(false);
    let context = || ptr::without_provenance_mut(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            for base in (0x7100_0000_0000..).step_by(4096) {
                register(base, 4096, of(context()), true);
                unregister(base);
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..100 {
            in_child(|| assert!(!is_in_another_context(0x7200_0000_0000, context())));
        }
        over.store(true, Ordering::Relaxed);
    });
}
