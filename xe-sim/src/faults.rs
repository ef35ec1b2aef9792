//! What goes wrong on purpose, by variables.
//!
//! - `XE_SIM_FAIL=DRM_IOCTL_XE_VM_BIND:ENOMEM:10`: the tenth such request of the process and all later ones fail (from the
//!   first one on without a number); the word `abort` in the place of the error ends the process there, as a driver does
//!   that takes a failure for impossible.
//! - `XE_SIM_STOP=hang:5`: the fifth copy or fill never ends and the kernel bans its queue; with `fault:5` it accesses an
//!   address at which nothing is bound; with `lost:5` the device is gone.
//! - `XE_SIM_SLOW=7`: each copy, fill and signal comes late by up to a millisecond, chosen by this seed.
//! - `XE_SIM_VRAM=268435456`: the device's own memory has this size.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::report::{not_simulated, say};
use crate::settings;

const FAIL: &str = "XE_SIM_FAIL";
const STOP: &str = "XE_SIM_STOP";
const SLOW: &str = "XE_SIM_SLOW";
const VRAM: &str = "XE_SIM_VRAM";

const ERRORS: [(&str, i32); 9] = [
    ("EACCES", libc::EACCES),
    ("ECANCELED", libc::ECANCELED),
    ("EFAULT", libc::EFAULT),
    ("EINTR", libc::EINTR),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("ENODEV", libc::ENODEV),
    ("ENOMEM", libc::ENOMEM),
    ("ENOSPC", libc::ENOSPC),
];
const LONGEST_DELAY_US: u64 = 1000;

/// One request that fails.
struct Failure {
    request: String,
    /// None ends the process.
    error: Option<i32>,
    from: u64,
    seen: AtomicU64,
}

fn failure() -> Option<&'static Failure> {
    static FAILURE: OnceLock<Option<Failure>> = OnceLock::new();
    let read = || {
        let text = settings::get(FAIL)?;
        let mut parts = text.split(':');
        let request = parts.next()?.to_owned();
        let error = match parts.next() {
            Some("abort") => None,
            Some(name) => match ERRORS.iter().find(|(known, _)| *known == name) {
                Some((_, number)) => Some(*number),
                None => not_simulated(format_args!("{FAIL}={text}: no error {name} is known")),
            },
            None => not_simulated(format_args!("{FAIL}={text}: no error is named")),
        };
        let from = parts.next().map_or(Ok(1), str::parse);
        let Ok(from) = from else {
            not_simulated(format_args!("{FAIL}={text}: the last part is no number"))
        };
        Some(Failure {
            request,
            error,
            from,
            seen: AtomicU64::new(0),
        })
    };
    FAILURE.get_or_init(read).as_ref()
}

/// The error with which a request is to fail, if it is.
pub(crate) fn fails(request: &str) -> Option<i32> {
    let failure = failure().filter(|failure| failure.request == request)?;
    if failure.seen.fetch_add(1, Ordering::Relaxed) + 1 < failure.from {
        return None;
    }
    say(format_args!("{request} fails on purpose"));
    Some(failure.error.unwrap_or_else(|| std::process::abort()))
}

/// How an operation of an engine stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Hang,
    Fault,
    Lost,
}

/// Counts one copy or fill, and tells whether it is the one that stops.
pub(crate) fn stops() -> Option<Stop> {
    static CHOICE: OnceLock<Option<(Stop, u64)>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let read = || {
        let text = settings::get(STOP)?;
        let chosen = text.split_once(':').and_then(|(how, number)| {
            let how = match how {
                "hang" => Stop::Hang,
                "fault" => Stop::Fault,
                "lost" => Stop::Lost,
                _ => return None,
            };
            Some((how, number.parse().ok()?))
        });
        if chosen.is_none() {
            not_simulated(format_args!("{STOP}={text}"));
        }
        chosen
    };
    let (how, number) = (*CHOICE.get_or_init(read))?;
    (SEEN.fetch_add(1, Ordering::Relaxed) + 1 == number).then_some(how)
}

/// Waits before an operation of an engine, where engines are slow.
pub(crate) fn delay() {
    static SEED: OnceLock<Option<u64>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    if let Some(seed) = *SEED.get_or_init(|| settings::number(SLOW)) {
        let step = seed.wrapping_add(SEEN.fetch_add(1, Ordering::Relaxed));
        thread::sleep(Duration::from_micros(scatter(step) % LONGEST_DELAY_US));
    }
}

/// The size of the device's own memory, where it is not the model's.
pub(crate) fn vram() -> Option<u64> {
    settings::number(VRAM)
}

/// A number that looks random, from one that counts up (the finalizer of SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
