//! The stack of the calling thread, and that which kernels need: the native runtime executes them on the stack of a thread that
//! waits for them.

use std::cell::OnceCell;
use std::hint::black_box;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::platform::thread::own_stack;

/// The most that the native runtime puts on the stack for a kernel: the private memory of all work-items that it executes at once
/// if it fits, else that of one work-item. It allocates what is larger.
pub const LARGEST_KERNEL: usize = 8 << 20;
/// What the frames of the native runtime need in addition.
const FRAMES: usize = 1 << 20;
/// The stack of the runtime's own threads. They execute all kernels.
pub const THREAD: usize = LARGEST_KERNEL + 2 * FRAMES;
/// What a thread needs to execute kernels, as long as none with more private memory was launched.
const USUAL: usize = 6 << 20;

/// The largest stack that the kernels launched so far need.
static NEEDED: AtomicUsize = AtomicUsize::new(USUAL);

/// Before the launch of a kernel that puts so many bytes on the stack, at most [`LARGEST_KERNEL`].
pub fn reserve(size: usize) {
    let needed = size + FRAMES;
    if needed > NEEDED.load(Ordering::Relaxed) {
        NEEDED.fetch_max(needed, Ordering::Relaxed);
    }
}

/// Whether the calling thread can execute kernels. Another thread may launch a larger one at any time, so threads do not depend
/// on the kernel that they wait for.
pub fn holds_kernels() -> bool {
    room() >= NEEDED.load(Ordering::Relaxed)
}

thread_local! {
    static STACK: OnceCell<Range<usize>> = const { OnceCell::new() };
}

/// How many bytes the calling thread can still push; 0 if it executes on another stack than its own, as coroutines do, or the
/// system does not tell.
fn room() -> usize {
    let local = 0_u8;
    let here = ptr::from_ref(black_box(&local)).addr();
    STACK.with(|stack| {
        let stack = stack.get_or_init(|| own_stack().unwrap_or_default());
        if stack.contains(&here) {
            here - stack.start
        } else {
            0
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_has_less_room_than_its_stack_and_more_than_half_of_it_at_its_start() {
        // wine has no smaller one; the C library of Linux may take a cached one up to four times as large.
        let small = if cfg!(windows) { 1 << 20 } else { 256 << 10 };
        for size in [small, 8 << 20] {
            let thread = thread::Builder::new().stack_size(size);
            let room = thread.spawn(room).unwrap().join().unwrap();
            assert!((size / 2..size + (64 << 10)).contains(&room), "{room}");
        }
    }

    #[test]
    fn a_frame_leaves_less_room() {
        #[inline(never)]
        fn below() -> usize {
            let frame = black_box([0_u8; 4096]);
            room() - usize::from(frame[0])
        }
        let room = room();
        assert!(below() + 4096 <= room);
    }
}
