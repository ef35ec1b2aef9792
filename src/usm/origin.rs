//! Which context each of zeusm's own allocations of Level Zero was made in: drivers may look pointers up for all their
//! contexts, and answer for another one's.

use std::collections::BTreeMap;
use std::process;
use std::sync::OnceLock;

use level_zero_sys as sys;
use parking_lot::RwLock;

struct Made {
    end: usize,
    /// The context's handle, as an address to compare.
    context: usize,
}

/// By first address. Addresses are unique in the process, whatever context they are of. Held for the time of a look-up.
static MADE: RwLock<BTreeMap<usize, Made>> = RwLock::new(BTreeMap::new());

/// Notes an allocation.
pub(crate) fn note(base: usize, size: usize, context: sys::ze_context_handle_t) {
    if is_own_process() {
        let made = Made {
            end: base + size,
            context: context.addr(),
        };
        MADE.write().insert(base, made);
    }
}

/// Forgets an allocation, before its address is free for another one.
pub(crate) fn forget(base: usize) {
    if is_own_process() {
        MADE.write().remove(&base);
    }
}

/// Whether `address` is known to be of another context than `context`.
pub(crate) fn is_elsewhere(address: usize, context: sys::ze_context_handle_t) -> bool {
    if !is_own_process() {
        return false;
    }
    let made = MADE.read();
    made.range(..=address)
        .next_back()
        .is_some_and(|(_, found)| address < found.end && found.context != context.addr())
}

/// Whether this process began the records: in a fork's child another thread of the parent may have them locked.
fn is_own_process() -> bool {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let here = process::id();
    *FIRST.get_or_init(|| here) == here
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

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
        forget(base);
        assert!(!is_elsewhere(base, contexts[1]));
    }
}
