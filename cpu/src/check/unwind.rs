//! The return addresses on the calling thread's stack.
//!
//! The unwinder searches tables for each frame, and programs call from the same places again and again. So the stacks that a thread
//! has unwound last are remembered with the places of their return addresses: where each still has the same one, the stack
//! is the same.

use std::cell::Cell;
use std::hint::black_box;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use smallvec::SmallVec;

/// The most native frames of a stack that are kept.
const DEEPEST: usize = 32;

/// As many stacks of a thread are remembered.
const REMEMBERED: usize = 16;

/// Addresses of a stack's frames.
type Frames = SmallVec<[usize; DEEPEST]>;

/// A stack: the addresses of its native frames, and the text of its lines of Python. Those of calls from one place share both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    pub native: Arc<[usize]>,
    pub python: Arc<[u8]>,
}

/// A stack that was unwound.
struct Unwound {
    /// The end of the stack: an address in the frame of [`here`].
    end: usize,
    /// The interpreter's code, at which it was cut.
    interpreter: Range<usize>,
    stack: Shared,
    /// Where the return addresses are, but for those of the checker's own calls beyond `end`.
    places: Frames,
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
/// frames, of which `python` is the text.
#[inline(never)]
pub fn here(interpreter: &Range<usize>, python: &[u8]) -> Shared {
    let local = 0_u8;
    let end = black_box(ptr::from_ref(&local)) as usize;
    // A handler of a signal that comes here finds none, and so does a thread at its end.
    let mut last = LAST.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let stack = last.find(end, interpreter, python).unwrap_or_else(|| {
        let unwound = Unwound::now(end, interpreter, python);
        let stack = unwound.stack.clone();
        last.remember(unwound);
        stack
    });
    let _ = LAST.try_with(|it| it.set(Some(last)));
    stack
}

/// The same from the address `first` on, which a signal has interrupted; without frames if there is no such address.
pub fn behind(first: usize, interpreter: &Range<usize>, python: &[u8]) -> Shared {
    let mut frames = Frames::new();
    trace(|address, _| {
        if !frames.is_empty() || address == first {
            frames.push(address);
        }
        goes_on(&frames, interpreter)
    });
    Shared {
        native: (&*frames).into(),
        python: python.into(),
    }
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
    fn now(end: usize, interpreter: &Range<usize>, python: &[u8]) -> Self {
        let (mut frames, mut places) = (Frames::new(), Frames::new());
        trace(|address, place| {
            frames.push(address);
            if place > end {
                places.push(place);
            }
            goes_on(&frames, interpreter)
        });
        Self {
            end,
            interpreter: interpreter.clone(),
            stack: Shared {
                native: (&*frames).into(),
                python: python.into(),
            },
            places,
        }
    }

    /// Whether the stack is this one. The frames behind a signal's handler have no return addresses at these places.
    ///
    /// The caller is the thread that has unwound it, at the same `end`.
    fn is_here(&self) -> bool {
        let frames = &self.stack.native;
        let own = frames.len() - self.places.len();
        let mut frames = frames[own..].iter().zip(&self.places);
        // SAFETY: it is on this thread's stack, as it was when the stack was unwound: each frame that is still there has its
        // caller's behind it, and the first that is not ends the search.
        frames.all(|(address, place)| unsafe { *(*place as *const usize) == *address })
    }
}

impl Last {
    fn find(&mut self, end: usize, interpreter: &Range<usize>, python: &[u8]) -> Option<Shared> {
        let is_same = |it: &&mut Unwound| it.end == end && it.interpreter == *interpreter;
        let mut all = self.all.iter_mut().filter(is_same);
        let stack = &mut all.find(|it| it.is_here())?.stack;
        if *stack.python != *python {
            stack.python = python.into();
        }
        Some(stack.clone())
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

    type Call = fn(usize, &[u8]) -> Shared;

    #[inline(never)]
    fn one(depth: usize, python: &[u8]) -> Shared {
        let next: Call = one;
        black_box(match depth {
            0 => here(&(0..0), python),
            _ => black_box(next)(depth - 1, python),
        })
    }

    #[inline(never)]
    fn other(depth: usize, python: &[u8]) -> Shared {
        let next: Call = other;
        black_box(match depth {
            0 => here(&(0..0), python),
            _ => black_box(next)(depth - 1, python),
        })
    }

    #[test]
    fn a_stack_is_unwound_once() {
        let stacks: Vec<_> = (0..5).map(|_| one(3, b"line")).collect();
        assert!(stacks[0].native.len() > 5);
        for stack in &stacks {
            assert!(Arc::ptr_eq(&stack.native, &stacks[0].native));
            assert!(Arc::ptr_eq(&stack.python, &stacks[0].python));
        }
        assert_eq!(remembered(), 1);
    }

    #[test]
    fn lines_of_python_are_those_of_the_call() {
        let lines: [&[u8]; 4] = [b"a", b"b", b"b", b""];
        let stacks: Vec<_> = lines.iter().map(|line| one(1, line)).collect();
        for (stack, line) in stacks.iter().zip(lines) {
            assert_eq!(*stack.python, *line);
            assert!(Arc::ptr_eq(&stack.native, &stacks[0].native));
        }
    }

    #[test]
    fn equal_depths_are_told_apart() {
        // The frames of both have one size.
        let calls: [Call; 4] = [one, other, one, other];
        let stacks: Vec<_> = calls.iter().map(|call| call(2, b"")).collect();
        assert_ne!(stacks[0], stacks[1]);
        assert_eq!((&stacks[0], &stacks[1]), (&stacks[2], &stacks[3]));
        assert_eq!(remembered(), 2);
    }

    #[test]
    fn few_stacks_are_remembered() {
        let depths = || 0..2 * REMEMBERED;
        let stacks = || -> Vec<_> { depths().map(|depth| one(depth, b"")).collect() };
        // From one place.
        let stacks: Vec<_> = (0..2).map(|_| stacks()).collect();
        assert_eq!(stacks[0], stacks[1]);
        assert_eq!(remembered(), REMEMBERED);
    }

    #[test]
    fn an_interpreters_frame_is_the_last() {
        let all: Vec<_> = (0..2).map(|_| one(3, b"").native).collect();
        let address = all[1][all[1].len() - 2];
        let ends = [address..address + 1, 0..0, address..address + 1];
        let cut: Vec<_> = ends.iter().map(|end| here(end, b"").native).collect();
        assert!(cut[0].ends_with(&[address]) && cut[2].ends_with(&[address]));
        assert!(cut[1].len() > cut[0].len());
    }
}
