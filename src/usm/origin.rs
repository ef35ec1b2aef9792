//! Which context each of zeusm's own allocations of Level Zero was made in: drivers may look pointers up for all their
//! contexts, and answer for another one's.

use std::collections::BTreeMap;

use level_zero_sys as sys;

use crate::process::{RwLock, held_at_fork};

struct Made {
    end: usize,
    /// The context's handle, as an address to compare.
    context: usize,
}

type Table = BTreeMap<usize, Made>;

/// By first address. Addresses are unique in the process, whatever context they are of. Held for the time of a look-up. A
/// fork's child goes on with its parent's records.
static MADE: RwLock<Table> = RwLock::new(Table::new());
held_at_fork!(MADE: Table);

/// Notes an allocation.
pub(crate) fn note(base: usize, size: usize, context: sys::ze_context_handle_t) {
    let made = Made {
        end: base + size,
        context: context.addr(),
    };
    MADE.write().insert(base, made);
}

/// Forgets an allocation, before its address is free for another one.
pub(crate) fn forget(base: usize) {
    MADE.write().remove(&base);
}

/// Whether `address` is known to be of another context than `context`.
pub(crate) fn is_elsewhere(address: usize, context: sys::ze_context_handle_t) -> bool {
    let made = MADE.read();
    made.range(..=address)
        .next_back()
        .is_some_and(|(_, found)| address < found.end && found.context != context.addr())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{ptr, thread};

    use super::*;
    use crate::process::in_child;

    #[test]
    fn the_context_of_an_allocation_is_known_as_long_as_it_lives() {
        let contexts = [1, 2].map(ptr::without_provenance_mut);
        let base = 0x7000_0000_0000;
        assert!(!is_elsewhere(base, contexts[0]));
        note(base, 4096, contexts[0]);
        for (address, elsewhere) in [
            (base - 1, false),
            (base, true),
            (base + 4095, true),
            (base + 4096, false),
        ] {
            assert!(!is_elsewhere(address, contexts[0]));
            assert_eq!(is_elsewhere(address, contexts[1]), elsewhere);
        }
        in_child(|| {
            assert!(is_elsewhere(base, contexts[1]));
            note(base + 4096, 4096, contexts[1]);
            assert!(is_elsewhere(base + 4096, contexts[0]));
            forget(base);
            assert!(!is_elsewhere(base, contexts[1]));
        });
        assert!(is_elsewhere(base, contexts[1]));
        forget(base);
        assert!(!is_elsewhere(base, contexts[1]));
    }

    #[test]
    fn a_child_looks_up_though_a_thread_of_its_parent_was_about_to() {
        let over = AtomicBool::new(false);
        let context = || ptr::without_provenance_mut(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                for base in (0x7100_0000_0000..).step_by(4096) {
                    note(base, 4096, context());
                    forget(base);
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            for _ in 0..100 {
                in_child(|| assert!(!is_elsewhere(0x7200_0000_0000, context())));
            }
            over.store(true, Ordering::Relaxed);
        });
    }
}
