//! Copies and fills with streaming stores.
//!
//! Streaming stores bypass the caches and so avoid reading the destination first, which is a third of a large copy's
//! traffic and half of a large fill's. They pay only when the destination would not stay in a cache, so callers use
//! them from [`STREAM_COPIES_FROM`] and [`STREAM_FILLS_FROM`] on.

use std::ptr;

/// Copies of at least this many bytes bypass the caches.
pub const STREAM_COPIES_FROM: usize = 16 << 20;
/// Fills of at least this many bytes bypass the caches. A fill uses half the memory of a copy.
pub const STREAM_FILLS_FROM: usize = 2 * STREAM_COPIES_FROM;

/// The width of the widest vector registers in bytes, and the alignment that streaming stores need.
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
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                x86::copy_512(to.add(head), from.add(head), body);
            } else if is_x86_feature_detected!("avx") {
                x86::copy_256(to.add(head), from.add(head), body);
            } else {
                ptr::copy_nonoverlapping(from.add(head), to.add(head), body);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        ptr::copy_nonoverlapping(from.add(head), to.add(head), body);
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
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") {
                x86::fill_512(middle, &wide, body);
            } else if is_x86_feature_detected!("avx") {
                x86::fill_256(middle, &wide, body);
            } else {
                repeat(middle, &wide, body);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        repeat(middle, &wide, body);
        ptr::copy_nonoverlapping(wide.as_ptr(), middle.add(body), tail);
    }
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256, _mm512_loadu_si512,
        _mm512_stream_si512,
    };

    use super::WIDE;

    /// # Safety
    /// As for [`super::stream_copy`]; `to` is aligned and `length` a multiple of [`WIDE`].
    #[target_feature(enable = "avx512f")]
    pub unsafe fn copy_512(to: *mut u8, from: *const u8, length: usize) {
        for offset in (0..length).step_by(WIDE) {
            // SAFETY: the offset is inside of both ranges.
            unsafe {
                let value = _mm512_loadu_si512(from.add(offset).cast());
                _mm512_stream_si512(to.add(offset).cast::<__m512i>(), value);
            }
        }
        _mm_sfence();
    }

    /// # Safety
    /// As for [`copy_512`].
    #[target_feature(enable = "avx")]
    pub unsafe fn copy_256(to: *mut u8, from: *const u8, length: usize) {
        for offset in (0..length).step_by(WIDE / 2) {
            // SAFETY: the offset is inside of both ranges.
            unsafe {
                let value = _mm256_loadu_si256(from.add(offset).cast());
                _mm256_stream_si256(to.add(offset).cast::<__m256i>(), value);
            }
        }
        _mm_sfence();
    }

    /// # Safety
    /// As for [`super::stream_fill`]; `to` is aligned and `length` a multiple of [`WIDE`].
    #[target_feature(enable = "avx512f")]
    pub unsafe fn fill_512(to: *mut u8, wide: &[u8; WIDE], length: usize) {
        // SAFETY: `wide` is as long as the vector.
        let value = unsafe { _mm512_loadu_si512(wide.as_ptr().cast()) };
        for offset in (0..length).step_by(WIDE) {
            // SAFETY: the offset is inside of the range.
            unsafe { _mm512_stream_si512(to.add(offset).cast::<__m512i>(), value) };
        }
        _mm_sfence();
    }

    /// # Safety
    /// As for [`fill_512`].
    #[target_feature(enable = "avx")]
    pub unsafe fn fill_256(to: *mut u8, wide: &[u8; WIDE], length: usize) {
        // SAFETY: `wide` is twice as long as the vector, and both of its halves are the same pattern or its two halves.
        let (low, high) = unsafe {
            (
                _mm256_loadu_si256(wide.as_ptr().cast()),
                _mm256_loadu_si256(wide.as_ptr().add(WIDE / 2).cast()),
            )
        };
        for offset in (0..length).step_by(WIDE) {
            // SAFETY: both halves are inside of the range.
            unsafe {
                _mm256_stream_si256(to.add(offset).cast::<__m256i>(), low);
                _mm256_stream_si256(to.add(offset + WIDE / 2).cast::<__m256i>(), high);
            }
        }
        _mm_sfence();
    }
}
