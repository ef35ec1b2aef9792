//! Threads that wait for a word of this process to change.

use std::ptr;
use std::sync::atomic::AtomicU32;

use windows_sys::Win32::System::Threading::{INFINITE, WaitOnAddress, WakeByAddressAll};

/// Waits while the word is `seen`, until it is woken. Returns at once when the word has another value, and may return for no
/// reason: the caller checks again.
pub fn wait(word: &AtomicU32, seen: u32) {
    let (word, seen) = (ptr::from_ref(word).cast(), ptr::from_ref(&seen).cast());
    // SAFETY: both have four bytes, and live during the call.
    unsafe { WaitOnAddress(word, seen, size_of::<u32>(), INFINITE) };
}

/// Wakes all threads that wait for the word.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: the system reads no memory there.
    unsafe { WakeByAddressAll(ptr::from_ref(word).cast()) };
}
