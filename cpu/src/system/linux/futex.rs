//! Threads that wait for a word of this process to change.

use std::sync::atomic::AtomicU32;

use rustix::thread::futex;

/// Waits while the word is `seen`, until it is woken. Returns at once when the word has another value, and may return for no
/// reason: the caller checks again.
pub fn wait(word: &AtomicU32, seen: u32) {
    let _ = futex::wait(word, futex::Flags::PRIVATE, seen, None);
}

/// Wakes all threads that wait for the word.
pub fn wake_all(word: &AtomicU32) {
    // Waking cannot fail: the address is valid.
    let _ = futex::wake(word, futex::Flags::PRIVATE, u32::MAX >> 1);
}
