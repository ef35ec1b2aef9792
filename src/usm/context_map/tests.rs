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
fn one_claims_pages_until_it_gives_them_back() {
    let (base, place) = (0x7300_0000_0000, of(ptr::without_provenance_mut(1)));
    let claim = |start: usize, end: usize| claim(&(base + start..base + end), place);
    assert!(claim(4096, 8192));
    for (start, end) in [(4096, 8192), (0, 4097), (8191, 12288), (0, 12288)] {
        assert!(!claim(start, end));
    }
    assert!(is_in_place(base + 8191) && !is_in_place(base + 8192));
    assert!(claim(0, 4096) && claim(8192, 12288));
    for page in [0, 4096, 8192] {
        unregister(base + page);
    }
    assert!(claim(4096, 8192));
    unregister(base + 4096);
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
