//! The context of each Level Zero allocation that zeusm made. Drivers may look pointers up in all their contexts, and return
//! the attributes of another context's allocation.

use std::collections::BTreeMap;
use std::ops::Range;

use level_zero_sys as sys;
use zeusm_process::{ForkLock, RwLock, held_at_fork};

use crate::history::Place;

struct Registered {
    end: usize,
    place: Place,
    /// Whether it belongs to no pool.
    is_unpooled: bool,
}

type Table = BTreeMap<usize, Registered>;

/// By base address; addresses are unique in the process, whatever their context. A fork's child inherits the table.
static REGISTERED: ForkLock<RwLock<Table>> = ForkLock::new(RwLock::new(Table::new()));
held_at_fork!(REGISTERED);

/// Registers an allocation.
pub(crate) fn register(base: usize, size: usize, place: Place, is_unpooled: bool) {
    let registered = Registered {
        end: base + size,
        place,
        is_unpooled,
    };
    REGISTERED.write().insert(base, registered);
}

/// Unregisters an allocation, before its address can be allocated again.
pub(crate) fn unregister(base: usize) {
    REGISTERED.write().remove(&base);
}

/// An allocation that belongs to no pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnpooledBlock {
    /// Its addresses.
    pub range: Range<usize>,
    /// Its place.
    pub place: Place,
}

/// The allocations of this process that belong to no pool, in the order of the addresses.
#[must_use]
pub fn unpooled() -> Vec<UnpooledBlock> {
    let table = REGISTERED.read();
    let unpooled = table.iter().filter(|(_, found)| found.is_unpooled);
    let blocks = unpooled.map(|(&base, found)| UnpooledBlock {
        range: base..found.end,
        place: found.place,
    });
    blocks.collect()
}

/// Whether `address` is in an allocation of another context than `context`.
pub(crate) fn is_in_another_context(address: usize, context: sys::ze_context_handle_t) -> bool {
    let table = REGISTERED.read();
    table
        .range(..=address)
        .next_back()
        .is_some_and(|(_, found)| address < found.end && found.place.context != context.addr())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
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
}
