//! Fault injection, controlled by environment variables.
//!
//! - `XE_SIM_FAIL=DRM_IOCTL_XE_VM_BIND:ENOMEM:10:1`: the tenth request of this name in the process fails; with `:2` the
//!   eleventh fails as well. The defaults are the first request and all later ones. The error `abort` terminates the
//!   process, like a driver that asserts on an unexpected failure. A program can call [`xe_sim_fail`] with the same text.
//! - `XE_SIM_STOP=hang:5`: the fifth copy or fill hangs after its first bytes, and the kernel bans the queue; with `fault:5`
//!   it accesses an unbound address; with `lost:5` the device is lost; with `wedged:5` or `gone:5` all later requests fail
//!   too, as the kernel does when it gives a device up, or when it is unplugged.
//! - `XE_SIM_SLOW=7`: each copy, fill, post-sync write and store of a register is delayed by up to a millisecond; the value is
//!   the random seed.
//! - `XE_SIM_VRAM=268435456`: the size of the device-local memory (VRAM).
//! - `XE_SIM_VRAM_USED=/run/used`: a file of 8 zero bytes, in which all processes count the VRAM in use.
//! - `XE_SIM_BAR=268435456`: the size of the host-visible part of VRAM (small BAR).

use std::ffi::{CStr, c_char, c_int};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::mem;
use std::num::{NonZeroU64, ParseIntError};
use std::ops::Range;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;

use crate::report::{say, value};
use crate::settings;
use crate::uapi::REQUESTS;

const FAIL: &str = "XE_SIM_FAIL";
const STOP: &str = "XE_SIM_STOP";
const SLOW: &str = "XE_SIM_SLOW";
const VRAM: &str = "XE_SIM_VRAM";
const VRAM_USED: &str = "XE_SIM_VRAM_USED";
const BAR: &str = "XE_SIM_BAR";

/// The name of mappings of the device node among the requests.
pub(crate) const MAPPING: &str = "mmap";

const ERRORS: [(&str, Errno); 12] = [
    ("EACCES", Errno::ACCESS),
    ("EAGAIN", Errno::AGAIN),
    ("EBUSY", Errno::BUSY),
    ("ECANCELED", Errno::CANCELED),
    ("EFAULT", Errno::FAULT),
    ("EINTR", Errno::INTR),
    ("EINVAL", Errno::INVAL),
    ("EIO", Errno::IO),
    ("ENODEV", Errno::NODEV),
    ("ENOMEM", Errno::NOMEM),
    ("ENOSPC", Errno::NOSPC),
    ("ETIME", Errno::TIME),
];
const LONGEST_DELAY_US: u64 = 1000;
/// With less, Intel's driver creates no command list, or crashes.
const LEAST_VRAM: u64 = 256 << 20;

/// Parses all variables, and returns the reason why one is malformed.
pub(crate) fn check() -> Result<(), String> {
    settings::parse::<Failure>(FAIL)?;
    settings::parse::<Chosen>(STOP)?;
    settings::parse::<u64>(SLOW)?;
    if settings::parse(VRAM)?.is_some_and(|bytes: u64| bytes < LEAST_VRAM) {
        return Err(format!("{VRAM}: at least {LEAST_VRAM} bytes are needed"));
    }
    settings::parse::<NonZeroU64>(BAR)?;
    Ok(())
}

/// An injected failure of requests.
struct Failure {
    request: String,
    /// `None` aborts the process.
    error: Option<Errno>,
    /// The indices of the failing requests, from zero.
    which: Range<u64>,
    seen: u64,
}

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let request = parts.next().unwrap_or_default().to_owned();
        if request != MAPPING && !REQUESTS.contains(&&*request) {
            return Err(format!("there is no request {request:?}"));
        }
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
        let (first, count) = (number(NonZeroU64::MIN)?, number(NonZeroU64::MAX)?);
        let (start, count) = (first.get() - 1, count.get());
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
    FAILURE.get_or_init(|| Mutex::new(value(FAIL)))
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
pub(crate) fn fails(request: &str) -> Option<Errno> {
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

/// A stop, and the number of the operation that it stops, from one.
#[derive(Clone, Copy)]
struct Chosen(Stop, NonZeroU64);

impl FromStr for Chosen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (how, number) = text.split_once(':').ok_or("no operation is named")?;
        let how = match how {
            "hang" => Stop::Hang,
            "fault" => Stop::Fault,
            "lost" => Stop::Lost(Loss::Reset),
            "wedged" => Stop::Lost(Loss::Wedged),
            "gone" => Stop::Lost(Loss::Gone),
            _ => return Err("one of hang, fault, lost, wedged and gone is needed"),
        };
        let number = number.parse();
        Ok(Self(how, number.map_err(|_| "operations count from 1")?))
    }
}

/// Counts a copy or fill. Returns the injected stop if this is the chosen operation.
pub(crate) fn stops() -> Option<Stop> {
    static CHOICE: OnceLock<Option<Chosen>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let Chosen(how, number) = (*CHOICE.get_or_init(|| value(STOP)))?;
    (SEEN.fetch_add(1, Ordering::Relaxed) + 1 == number.get()).then_some(how)
}

/// Delays an engine operation if `XE_SIM_SLOW` is set.
pub(crate) fn delay() {
    static SEED: OnceLock<Option<u64>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    if let Some(seed) = *SEED.get_or_init(|| value(SLOW)) {
        let step = seed.wrapping_add(SEEN.fetch_add(1, Ordering::Relaxed));
        // A hash is a pseudo-random number, and the same in each run.
        let random = BuildHasherDefault::<DefaultHasher>::new().hash_one(step);
        thread::sleep(Duration::from_micros(random % LONGEST_DELAY_US));
    }
}

/// The size of VRAM, if it overrides that of the model.
pub(crate) fn vram() -> Option<u64> {
    value(VRAM)
}

/// The file in which processes count the VRAM in use, if they share it.
pub(crate) fn vram_used() -> Option<String> {
    settings::get(VRAM_USED)
}

/// The size of the host-visible part of VRAM, if it is limited.
pub(crate) fn bar() -> Option<u64> {
    value(BAR).map(NonZeroU64::get)
}
