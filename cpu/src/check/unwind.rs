//! The return addresses on the calling thread's stack.
//!
//! The unwinder searches tables for each frame, and programs call from the same places again and again. So the stacks that a thread
//! has unwound last are remembered with the places of their return addresses: where each still has the same one, the stack
//! is the same.

use std::cell::Cell;
use std::hint::black_box;
use std::ops::Range;
use std::ptr;

use smallvec::SmallVec;

/// The most native frames of a stack that are kept.
const DEEPEST: usize = 32;

/// As many stacks of a thread are remembered.
const REMEMBERED: usize = 16;

/// The addresses of a stack's native frames.
pub type Frames = SmallVec<[usize; DEEPEST]>;

/// A stack that was unwound.
struct Unwound {
    /// The end of the stack: an address in the frame of [`frames`].
    end: usize,
    /// The interpreter's code, at which it was cut.
    interpreter: Range<usize>,
    frames: Frames,
    /// Where the return addresses are, but for those of the checker's own calls beyond `end`.
    places: SmallVec<[usize; DEEPEST]>,
}

/// The stacks that a thread has unwound last, and which of them is replaced next.
#[derive(Default)]
struct Last {
    all: Vec<Unwound>,
    next: usize,
}

thread_local! {
    static LAST: Cell<Option<Box<Last>>> = const { Cell::new(None) };
}

/// The return addresses of the calling thread, to the first that is the `interpreter`'s, whose own calls tell less than Python's
/// frames.
#[inline(never)]
pub fn frames(interpreter: &Range<usize>) -> Frames {
    let here = 0_u8;
    let end = black_box(ptr::from_ref(&here)) as usize;
    // A handler of a signal that comes here finds none, and so does a thread at its end.
    let mut last = LAST.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let frames = last.find(end, interpreter).unwrap_or_else(|| {
        let unwound = Unwound::now(end, interpreter);
        let frames = unwound.frames.clone();
        last.remember(unwound);
        frames
    });
    let _ = LAST.try_with(|it| it.set(Some(last)));
    frames
}

/// The same from the address `first` on, which a signal has interrupted.
pub fn frames_from(first: usize, interpreter: &Range<usize>) -> Frames {
    let mut frames = Frames::new();
    trace(|address, _| {
        if !frames.is_empty() || address == first {
            frames.push(address);
        }
        goes_on(&frames, interpreter)
    });
    frames
}

/// Whether a stack has further frames that are wanted.
fn goes_on(frames: &Frames, interpreter: &Range<usize>) -> bool {
    let is_end = frames.len() > 1 && frames.last().is_some_and(|it| interpreter.contains(it));
    frames.len() < DEEPEST && !is_end
}

/// Calls `each` with the address of each frame's next instruction, and with the place on the stack where that is, until it
/// returns `false`. Takes the dynamic loader's lock at most, so a handler of a synchronous fault can call it.
#[inline(always)]
fn trace(mut each: impl FnMut(usize, usize) -> bool) {
    // SAFETY: the unwinder that this calls is thread-safe; the lock that `trace` takes serves resolving, which this does
    // not do.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            // A call pushes the return address, which the stack pointer is behind when the call has returned.
            let place = (frame.sp() as usize).wrapping_sub(size_of::<usize>());
            each(frame.ip() as usize, place)
        });
    }
}

impl Unwound {
    /// The stack of the calling thread, from `end` on.
    #[inline(always)]
    fn now(end: usize, interpreter: &Range<usize>) -> Self {
        let mut unwound = Self {
            end,
            interpreter: interpreter.clone(),
            frames: Frames::new(),
            places: SmallVec::new(),
        };
        trace(|address, place| {
            unwound.frames.push(address);
            if place > end {
                unwound.places.push(place);
            }
            goes_on(&unwound.frames, interpreter)
        });
        unwound
    }

    /// Whether the stack is this one. The frames behind a signal's handler have no return addresses at these places.
    ///
    /// The caller is the thread that has unwound it, at the same `end`.
    fn is_here(&self) -> bool {
        let own = self.frames.len() - self.places.len();
        let mut frames = self.frames[own..].iter().zip(&self.places);
        // SAFETY: it is on this thread's stack, as it was when the stack was unwound: each frame that is still there has its
        // caller's behind it, and the first that is not ends the search.
        frames.all(|(address, place)| unsafe { *(*place as *const usize) == *address })
    }
}

impl Last {
    fn find(&self, end: usize, interpreter: &Range<usize>) -> Option<Frames> {
        let is_same = |it: &&Unwound| it.end == end && it.interpreter == *interpreter;
        let mut all = self.all.iter().filter(is_same);
        all.find(|it| it.is_here()).map(|it| it.frames.clone())
    }

    /// Keeps a stack in the place of the oldest, if it can be found again.
    fn remember(&mut self, unwound: Unwound) {
        if !unwound.is_here() {
            return;
        }
        match self.all.get_mut(self.next) {
            Some(oldest) => *oldest = unwound,
            None => self.all.push(unwound),
        }
        self.next = (self.next + 1) % REMEMBERED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many stacks this thread remembers.
    fn remembered() -> usize {
        let last = LAST.take();
        let count = last.as_ref().map_or(0, |it| it.all.len());
        LAST.set(last);
        count
    }

    /// The frames without memory of earlier ones.
    #[inline(never)]
    fn unwound() -> Frames {
        LAST.set(None);
        frames(&(0..0))
    }

    #[inline(never)]
    fn one(depth: usize) -> Frames {
        black_box(if depth == 0 { frames(&(0..0)) } else { one(depth - 1) })
    }

    #[inline(never)]
    fn other(depth: usize) -> Frames {
        black_box(if depth == 0 { frames(&(0..0)) } else { other(depth - 1) })
    }

    #[test]
    fn a_stack_is_unwound_once() {
        let stacks: Vec<_> = (0..5).map(|_| one(3)).collect();
        assert!(stacks[0].len() > 5);
        assert!(stacks.iter().all(|it| *it == stacks[0]));
        assert_eq!(remembered(), 1);
    }

    #[test]
    fn equal_depths_are_told_apart() {
        // Both have frames of the same size.
        let calls = [one, other, one, other];
        let stacks: Vec<_> = calls.iter().map(|call| call(2)).collect();
        assert_ne!(stacks[0], stacks[1]);
        assert_eq!((&stacks[0], &stacks[1]), (&stacks[2], &stacks[3]));
        assert_eq!(remembered(), 2);
    }

    #[test]
    fn few_stacks_are_remembered() {
        let depths = 0..2 * REMEMBERED;
        let first: Vec<_> = depths.clone().map(one).collect();
        let again: Vec<_> = depths.map(one).collect();
        assert_eq!(first, again);
        assert_eq!(remembered(), REMEMBERED);
    }

    #[test]
    fn a_remembered_stack_is_what_the_unwinder_finds() {
        let mut stacks = Vec::new();
        for forgets in [true, false, false, true] {
            if forgets {
                LAST.set(None);
            }
            stacks.push(one(4));
        }
        assert!(stacks.iter().all(|it| *it == stacks[0]));
        assert!(!unwound().is_empty());
    }

    #[test]
    fn an_interpreters_frame_is_the_last() {
        let all = one(3);
        let address = all[all.len() - 2];
        let cut = frames(&(address..address + 1));
        assert!(cut.ends_with(&[address]));
        assert!(frames(&(0..0)).len() > cut.len());
    }
}
