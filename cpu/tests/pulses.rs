//! Events that are reset as soon as they are set.

#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks, missing_docs)]

#[macro_use]
mod common;

use std::thread;

use common::{Context, Event, Kind};

const LISTS: usize = 16;

/// A thread sets the event that the lists wait for, and while it begins their commands another one resets it.
#[test]
fn every_command_that_waited_passes_an_event_that_was_set_and_reset() {
    let context = Context::new();
    for round in 0..300 {
        let gate = context.pool(1, false);
        let ends = context.pool(LISTS as u32, false);
        let memory = context.alloc(Kind::Host, LISTS << 14);
        let lists: Vec<_> = (0..LISTS).map(|_| context.immediate(0)).collect();
        for (index, (list, end)) in lists.iter().zip(&ends.events).enumerate() {
            let part = memory.wrapping_byte_add(index << 14);
            common::fill(*list, part, &[7], 1 << 14, *end, &gate.events);
        }
        let event = gate.events[0] as usize;
        let resetting = thread::spawn(move || {
            while !common::is_set(event as Event) {
                std::hint::spin_loop();
            }
            ok!(zeEventHostReset(event as Event));
        });
        ok!(zeEventHostSignal(gate.events[0]));
        resetting.join().unwrap();
        ends.events.iter().for_each(|end| common::wait(*end));
        let all = common::bytes(memory, LISTS << 14);
        assert!(all.iter().all(|byte| *byte == 7), "round {round}");
        lists.into_iter().for_each(common::destroy);
        context.free(memory);
    }
}
