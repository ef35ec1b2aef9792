//! Copies and fills with streaming stores.
//!
//! Streaming stores bypass the caches and so avoid reading the destination first, which is a third of a large copy's
//! traffic and half of a large fill's. They pay only when the destination would not stay in a cache, so callers use
//! them from [`STREAM_COPIES_FROM`] and [`STREAM_FILLS_FROM`] on.

use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
use std::ptr;

/// Copies of at least this many bytes bypass the caches.
pub const STREAM_COPIES_FROM: usize = 16 << 20;
/// Fills of at least this many bytes bypass the caches. A fill uses half the memory of a copy.
pub const STREAM_FILLS_FROM: usize = 2 * STREAM_COPIES_FROM;

/// The bytes of a cache line, to which streaming stores are aligned, so that each line is written whole.
const WIDE: usize = 64;

/// Copies `length` bytes past the caches.
///
/// # Safety
/// `from` must be valid for reading and `to` for writing `length` bytes, and they must not overlap.
pub unsafe fn stream_copy(to: *mut u8, from: *const u8, length: usize) {
    let head = to.align_offset(WIDE).min(length);
    let body = (length - head) / WIDE * WIDE;
    // SAFETY: head, body and tail are the `length` bytes; after the head, `to` is aligned.
    unsafe {
        ptr::copy_nonoverlapping(from, to, head);
        let middle = from.add(head);
        stream(to.add(head), body, |offset| load(middle.add(offset)));
        let done = head + body;
        ptr::copy_nonoverlapping(from.add(done), to.add(done), length - done);
    }
}

/// Fills `length` bytes past the caches with a pattern whose length divides 64.
///
/// # Safety
/// `to` must be valid for writing `length` bytes and aligned to the pattern's length, a power of two up to 64 that
/// divides `length`.
pub unsafe fn stream_fill(to: *mut u8, length: usize, pattern: &[u8]) {
    let mut wide = [0_u8; WIDE];
    for (place, byte) in wide.iter_mut().zip(pattern.iter().cycle()) {
        *place = *byte;
    }
    let head = to.align_offset(WIDE).min(length);
    let body = (length - head) / WIDE * WIDE;
    let tail = length - head - body;
    // SAFETY: head, body and tail are the `length` bytes. `to` is aligned to the pattern, so a repetition begins where
    // the head ends; head and tail are shorter than `wide`.
    unsafe {
        ptr::copy_nonoverlapping(wide.as_ptr(), to, head);
        let middle = to.add(head);
        let line = load(wide.as_ptr());
        stream(middle, body, |_| line);
        ptr::copy_nonoverlapping(wide.as_ptr(), middle.add(body), tail);
    }
}

/// A cache line in registers that all processors of this architecture have.
type Line = [__m128i; 4];

/// # Safety
/// `from` must be valid for reading a line.
unsafe fn load(from: *const u8) -> Line {
    let vectors = from.cast::<__m128i>();
    let vector = |index| {
        // SAFETY: the vectors are the line's.
        unsafe { _mm_loadu_si128(vectors.add(index)) }
    };
    [vector(0), vector(1), vector(2), vector(3)]
}

/// Writes `length` bytes past the caches: at each offset the line that `line` returns.
///
/// # Safety
/// `to` must be valid for writing `length` bytes, a multiple of [`WIDE`], and aligned to that.
unsafe fn stream(to: *mut u8, length: usize, line: impl Fn(usize) -> Line) {
    for offset in (0..length).step_by(WIDE) {
        let [first, second, third, fourth] = line(offset);
        // SAFETY: the line is inside of the range.
        unsafe {
            let place = to.add(offset).cast::<__m128i>();
            _mm_stream_si128(place, first);
            _mm_stream_si128(place.add(1), second);
            _mm_stream_si128(place.add(2), third);
            _mm_stream_si128(place.add(3), fourth);
        }
    }
    // SAFETY: all processors of this architecture have the instruction.
    unsafe { _mm_sfence() };
}

/// Repeats `pattern` over `length` bytes through the caches; the last repetition may be cut.
///
/// # Safety
/// `to` must be valid for writing `length` bytes.
pub unsafe fn repeat(to: *mut u8, pattern: &[u8], length: usize) {
    /// Doubling stops at about this size, so that the source of the copies stays in the first-level cache.
    const TILE: usize = 4096;
    // Whole repetitions, so that a copy continues the one before it.
    let tile = (TILE / pattern.len()).max(1) * pattern.len();
    let mut done = pattern.len().min(length);
    // SAFETY: `done` never exceeds `length`, and source and destination do not overlap.
    unsafe {
        ptr::copy_nonoverlapping(pattern.as_ptr(), to, done);
        while done < length {
            let next = done.min(tile).min(length - done);
            ptr::copy_nonoverlapping(to, to.add(done), next);
            done += next;
        }
    }
}
