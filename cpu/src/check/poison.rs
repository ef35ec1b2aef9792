//! Bytes that were never written: new allocations are filled with a pattern, which copies to the host look for.

use super::finding::{Finding, Kind};
use super::{report, settings, table};

/// The pattern of a new allocation; a program that stores exactly this number is suspected wrongly.
const PATTERN: u64 = 0xb5e1_93c7_2f4d_8a69;
const WORD: usize = size_of::<u64>();
/// As many bytes of a word suffice to recognise it.
const LEAST: usize = 4;

/// Whether the environment asks for this check.
pub fn is_wanted() -> bool {
    settings::get().uninitialised
}

/// What new memory is filled with, if the environment asks for it.
pub fn pattern() -> Option<u64> {
    is_wanted().then_some(PATTERN)
}

/// Looks at bytes that are about to be copied out of device memory.
///
/// # Safety
/// `length` bytes at `from` are readable for the calling thread.
pub unsafe fn look(from: usize, length: usize) {
    let Some(watch) = table::find(from).filter(|it| it.distance(from) == 0) else {
        return;
    };
    let (bytes, end) = (PATTERN.to_ne_bytes(), from + length);
    let part = |word: usize| word.max(from)..(word + WORD).min(end);
    let is_unset = |word: &usize| {
        let part = part(*word);
        // SAFETY: the bytes are inside of the range.
        let has_pattern = |at: usize| unsafe { *(at as *const u8) == bytes[at % WORD] };
        part.len() >= LEAST && part.into_iter().all(has_pattern)
    };
    let mut words = (from / WORD * WORD..end)
        .step_by(WORD)
        .skip_while(|word| !is_unset(word));
    let Some(unset) = words.next() else {
        return;
    };
    let more = words.take_while(is_unset).map(|word| part(word).len());
    let count = part(unset).len() + more.sum::<usize>();
    // The copy may have more of them, behind others or in another part that another thread copies.
    let message = format!("at least {count} bytes of a copy to the host were never written");
    let finding = Finding::here(Kind::Uninitialised, message);
    report::add(finding.about(part(unset).start, Some(watch)));
}
