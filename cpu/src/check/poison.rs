//! Bytes that were never written: new allocations are filled with a pattern, which copies to the host look for.

use super::finding::{Finding, Kind};
use super::watch::Watch;
use super::{report, settings, table};

/// The pattern of a new allocation; a program that stores exactly this number is suspected wrongly.
const PATTERN: u64 = 0xb5e1_93c7_2f4d_8a69;
const WORD: usize = size_of::<u64>();

/// Whether the environment asks for this check.
pub fn is_wanted() -> bool {
    settings::get().uninitialised
}

/// Fills the memory of a new allocation.
///
/// # Safety
/// The caller owns `size` accessible bytes at `base`, which is aligned to 8.
pub unsafe fn fill(base: usize, size: usize) {
    let words = base as *mut u64;
    for index in 0..size / WORD {
        // SAFETY: the word is inside, and aligned.
        unsafe { words.add(index).write(PATTERN) };
    }
}

/// Looks at bytes that are about to be copied out of device memory.
///
/// # Safety
/// `length` bytes at `from` are readable for the calling thread.
pub unsafe fn look(from: usize, length: usize) {
    let Some(watch) = table::find(from).filter(|it| it.distance(from) == 0) else {
        return;
    };
    let first = from.next_multiple_of(WORD);
    let words = (from + length).saturating_sub(first) / WORD;
    // SAFETY: the words are inside of the range, and aligned.
    let is_unset = |index: &usize| unsafe { (first as *const u64).add(*index).read() } == PATTERN;
    let Some(unset) = (0..words).find(is_unset) else {
        return;
    };
    let count = (unset..words).take_while(is_unset).count() * WORD;
    tell(watch.as_ref(), first + unset * WORD, count);
}

fn tell(watch: &Watch, address: usize, count: usize) {
    let message = format!("{count} bytes are copied to the host that were never written");
    let finding =
        Finding::here(Kind::Uninitialised, message).about(address, table::find(watch.base));
    report::add(finding);
}
