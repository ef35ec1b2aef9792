//! The time by the performance counter, which std's `Instant` reads, too.

use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use zeusm_process::Lazy;

/// The current reading in nanoseconds.
#[must_use]
pub fn now() -> u64 {
    static FREQUENCY: Lazy<u128> = Lazy::new();
    let mut ticks = 0;
    // SAFETY: the call writes a number, and never fails.
    unsafe { QueryPerformanceCounter(&raw mut ticks) };
    let frequency = FREQUENCY.get_or_make(|| {
        let mut frequency = 1;
        // SAFETY: as above.
        unsafe { QueryPerformanceFrequency(&raw mut frequency) };
        u128::from(frequency.unsigned_abs().max(1))
    });
    (u128::from(ticks.unsigned_abs()) * 1_000_000_000 / *frequency) as u64
}
