//! Fault injection, controlled by environment variables.
//!
//! - `XE_SIM_FAIL=DRM_IOCTL_XE_VM_BIND:ENOMEM:10:1`: the tenth request of this name in the process fails; with `:2` the
//!   eleventh fails as well. The defaults are the first request and all later ones. The error `abort` terminates the
//!   process, like a driver that asserts on an unexpected failure. A program can call [`xe_sim_fail`] with the same text.
//! - `XE_SIM_STOP=hang:5`: the fifth copy or fill hangs after its first bytes, and the kernel bans the queue; with `fault:5`
//!   it accesses an unbound address; with `lost:5` the device is lost; with `wedged:5` or `gone:5` all later requests fail
//!   too, as the kernel does when it gives a device up, or when it is unplugged.
//! - `XE_SIM_SLOW=7`: each copy, fill and post-sync write is delayed by up to a millisecond; the value is the random seed.
//! - `XE_SIM_VRAM=268435456`: the size of the device-local memory (VRAM).
//! - `XE_SIM_BAR=268435456`: the size of the host-visible part of VRAM (small BAR).

use std::ffi::{CStr, c_char, c_int};
use std::mem;
use std::num::ParseIntError;
use std::ops::Range;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use crate::report::{not_simulated, say};
use crate::settings;

const FAIL: &str = "XE_SIM_FAIL";
const STOP: &str = "XE_SIM_STOP";
const SLOW: &str = "XE_SIM_SLOW";
const VRAM: &str = "XE_SIM_VRAM";
const BAR: &str = "XE_SIM_BAR";

const ERRORS: [(&str, i32); 12] = [
    ("EACCES", libc::EACCES),
    ("EAGAIN", libc::EAGAIN),
    ("EBUSY", libc::EBUSY),
    ("ECANCELED", libc::ECANCELED),
    ("EFAULT", libc::EFAULT),
    ("EINTR", libc::EINTR),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("ENODEV", libc::ENODEV),
    ("ENOMEM", libc::ENOMEM),
    ("ENOSPC", libc::ENOSPC),
    ("ETIME", libc::ETIME),
];
const LONGEST_DELAY_US: u64 = 1000;

/// An injected failure of requests.
struct Failure {
    request: String,
    /// The `errno`; `None` aborts the process.
    error: Option<i32>,
    /// The indices of the failing requests, from zero.
    which: Range<u64>,
    seen: u64,
}

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let request = parts.next().unwrap_or_default().to_owned();
        let error = match parts.next().ok_or("no error is named")? {
            "abort" => None,
            name => {
                let known = ERRORS.iter().find(|(known, _)| *known == name);
                Some(known.ok_or(format!("no error {name} is known"))?.1)
            }
        };
        let mut number = |default| {
            let part = parts.next().map_or(Ok(default), str::parse);
            part.map_err(|error: ParseIntError| error.to_string())
        };
        let (first, count) = (number(1)?, number(u64::MAX)?);
        let start = first.saturating_sub(1);
        Ok(Self {
            request,
            error,
            which: start..start.saturating_add(count),
            seen: 0,
        })
    }
}

/// The active failure. The lock is only held to check or replace it.
fn failure() -> &'static Mutex<Option<Failure>> {
    static FAILURE: OnceLock<Mutex<Option<Failure>>> = OnceLock::new();
    FAILURE.get_or_init(|| {
        let parsed = settings::get(FAIL).map(|text| match text.parse() {
            Ok(failure) => failure,
            Err(why) => not_simulated(format_args!("{FAIL}={text}: {why}")),
        });
        Mutex::new(parsed)
    })
}

/// Replaces the injected failure. `text` has the format of `XE_SIM_FAIL`; null disables the injection. Returns the number of
/// requests that the previous failure has counted, or -1 if the text is malformed.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xe_sim_fail(text: *const c_char) -> c_int {
    let new = if text.is_null() {
        None
    } else {
        // SAFETY: the caller guarantees a C string.
        match unsafe { CStr::from_ptr(text) }.to_string_lossy().parse() {
            Ok(failure) => Some(failure),
            Err(_) => return -1,
        }
    };
    let last = mem::replace(&mut *failure().lock(), new);
    last.map_or(0, |last| last.seen as c_int)
}

/// Counts a request. Returns the error with which it must fail, if any.
pub(crate) fn fails(request: &str) -> Option<i32> {
    let mut failure = failure().lock();
    let failure = failure
        .as_mut()
        .filter(|failure| failure.request == request)?;
    failure.seen += 1;
    if !failure.which.contains(&(failure.seen - 1)) {
        return None;
    }
    say(format_args!("{request} fails on purpose"));
    Some(failure.error.unwrap_or_else(|| std::process::abort()))
}

/// The number of bytes that a copy or fill transfers before an injected stop.
pub(crate) const BEFORE_STOP: u64 = 4096;

/// The kind of an injected stop of an engine operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Hang,
    Fault,
    Lost(Loss),
}

/// The ways to lose a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The queues are banned.
    Reset,
    /// The kernel has given the device up: all requests fail as well.
    Wedged,
    /// The device is unplugged: all requests and new mappings fail as well.
    Gone,
}

/// Counts a copy or fill. Returns the injected stop if this is the chosen operation.
pub(crate) fn stops() -> Option<Stop> {
    static CHOICE: OnceLock<Option<(Stop, u64)>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let read = || {
        let text = settings::get(STOP)?;
        let chosen = text.split_once(':').and_then(|(how, number)| {
            let how = match how {
                "hang" => Stop::Hang,
                "fault" => Stop::Fault,
                "lost" => Stop::Lost(Loss::Reset),
                "wedged" => Stop::Lost(Loss::Wedged),
                "gone" => Stop::Lost(Loss::Gone),
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

/// Delays an engine operation if `XE_SIM_SLOW` is set.
pub(crate) fn delay() {
    static SEED: OnceLock<Option<u64>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    if let Some(seed) = *SEED.get_or_init(|| settings::number(SLOW)) {
        let step = seed.wrapping_add(SEEN.fetch_add(1, Ordering::Relaxed));
        thread::sleep(Duration::from_micros(scatter(step) % LONGEST_DELAY_US));
    }
}

/// The size of VRAM, if it overrides that of the model.
pub(crate) fn vram() -> Option<u64> {
    settings::number(VRAM)
}

/// The size of the host-visible part of VRAM, if it is limited.
pub(crate) fn bar() -> Option<u64> {
    settings::number(BAR)
}

/// Maps a counter to a pseudo-random number (the finalizer of SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
