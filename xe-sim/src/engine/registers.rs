//! The registers of one engine.

use std::collections::HashMap;

use super::alu::GENERAL;

/// Offsets from an engine's first register: the counter of time, in three places, low half first.
const TIMESTAMPS: [u32; 2] = [0x358, 0x3a8];
/// Where engines' registers start: render, blitter, compute. A stream names them by any of these, and the hardware maps
/// the numbers to the engine that runs it.
const ENGINES: [u32; 3] = [0x2000, 0x1a000, 0x2_2000];
const ENGINE_SIZE: u32 = 0x1000;
/// The counter's frequency, as the kernel reports it.
pub(crate) const TIMESTAMP_HZ: u64 = 19_200_000;

/// The counter, which all engines of all devices share.
pub(crate) fn timestamp() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is written.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) };
    let (seconds, nanoseconds) = (time.tv_sec as u64, time.tv_nsec as u64);
    seconds * TIMESTAMP_HZ + nanoseconds * (TIMESTAMP_HZ / 100_000) / 10_000
}

#[derive(Debug, Default)]
pub(super) struct Registers {
    values: HashMap<u32, u32>,
}

impl Registers {
    pub(super) fn get(&self, register: u32) -> u32 {
        let register = local(register);
        for low in TIMESTAMPS {
            match register {
                _ if register == low => return timestamp() as u32,
                _ if register == low + 4 => return (timestamp() >> 32) as u32,
                _ => {}
            }
        }
        self.values.get(&register).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, register: u32, value: u32) {
        self.values.insert(local(register), value);
    }

    /// One of the sixteen general purpose registers, 64 bits.
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

/// The number within the engine; registers outside of engines keep theirs.
fn local(register: u32) -> u32 {
    let in_engine = |start: &u32| (*start..start + ENGINE_SIZE).contains(&register);
    match ENGINES.iter().find(|start| in_engine(start)) {
        Some(start) => register - start,
        None => register,
    }
}
