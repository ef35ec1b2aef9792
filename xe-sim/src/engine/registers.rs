//! The MMIO registers of one engine.

use std::collections::HashMap;
use std::ops::Range;

use rustix::time::{ClockId, clock_gettime};

use crate::report::not_simulated;

/// Offsets of the timestamp counters within an engine's register block; the high half follows the low half.
const TIMESTAMPS: [u32; 2] = [0x358, 0x3a8];
/// The offset of the first general purpose register within an engine's register block.
const GENERAL: u32 = 0x600;
/// Base addresses of the register blocks: render, blitter, compute. A command stream may use any of them; the hardware
/// remaps them to the engine that executes the stream.
const ENGINES: [u32; 3] = [0x2000, 0x1a000, 0x2_2000];
const ENGINE_SIZE: u32 = 0x1000;
/// The general purpose registers within an engine's register block, which are zero at first.
const GENERAL_REGISTERS: Range<u32> = GENERAL..GENERAL + 16 * 8;
/// The timestamp frequency that the kernel reports.
pub(crate) const TIMESTAMP_HZ: u64 = 19_200_000;

/// The timestamp counter, shared by all engines of all devices.
pub(crate) fn timestamp() -> u64 {
    let time = clock_gettime(ClockId::MonotonicRaw);
    let (seconds, nanoseconds) = (time.tv_sec as u64, time.tv_nsec as u64);
    seconds * TIMESTAMP_HZ + nanoseconds * (TIMESTAMP_HZ / 100_000) / 10_000
}

#[derive(Debug, Default)]
pub(super) struct Registers {
    values: HashMap<u32, u32>,
}

impl Registers {
    /// A timestamp, a general purpose register, or what the stream has written to another register.
    pub(super) fn get(&self, register: u32) -> u32 {
        let register = local(register);
        let high = register & 4;
        if TIMESTAMPS.contains(&(register - high)) {
            return (timestamp() >> (8 * high)) as u32;
        }
        match self.values.get(&register) {
            Some(value) => *value,
            None if GENERAL_REGISTERS.contains(&register) => 0,
            None => not_simulated(format_args!("the register {register:#x}")),
        }
    }

    pub(super) fn set(&mut self, register: u32, value: u32) {
        self.values.insert(local(register), value);
    }

    /// The 64-bit value of one of the sixteen general purpose registers.
    pub(super) fn general(&self, number: u32) -> u64 {
        let low = GENERAL + 8 * number;
        u64::from(self.get(low)) | u64::from(self.get(low + 4)) << 32
    }

    pub(super) fn set_general(&mut self, number: u32, value: u64) {
        let low = GENERAL + 8 * number;
        self.set(low, value as u32);
        self.set(low + 4, (value >> 32) as u32);
    }
}

/// The offset of a register within its engine's block. Registers outside of the engine blocks keep their address.
fn local(register: u32) -> u32 {
    let in_engine = |start: &u32| (*start..start + ENGINE_SIZE).contains(&register);
    match ENGINES.iter().find(|start| in_engine(start)) {
        Some(start) => register - start,
        None => register,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::in_child;

    #[test]
    fn a_register_that_is_not_known_is_reported() {
        let mut registers = Registers::default();
        assert_eq!(registers.get(0x2600), 0);
        assert_ne!(registers.get(0x22358), 0);
        registers.set(0x20d8, 7);
        assert_eq!(registers.get(0x20d8), 7);
        let told = in_child(
            "engine::registers::tests::a_register_that_is_not_known_is_reported",
            || {
                registers.get(0x2244);
            },
        );
        assert!(told.contains("not simulated: the register 0x244"), "{told}");
    }
}
