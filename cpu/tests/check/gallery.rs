//! What the programs have in common.

use crate::common::{Event, List, Memory, copy};

/// A program, and the kinds of findings that it must have, in order.
pub type Program = (&'static str, &'static [&'static str], fn());

/// Appends a copy of the first `half` bytes to those after them, which signals `signal` after `wait`.
pub fn copy_half(list: List, memory: Memory, half: usize, signal: Event, wait: Event) {
    let to = memory.wrapping_byte_add(half);
    copy(list, to, memory, half, signal, &[wait]);
}
