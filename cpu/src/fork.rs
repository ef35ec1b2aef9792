//! Forks: a child has the memory of its parent but only the thread that forked.
//!
//! Four rules make a child work, however many threads of the parent were inside the runtime:
//! - Locks that are held for microseconds guard what the child inherits: the handles' tables, the allocations, the blocks
//!   that they are cut from, the exports. The thread that forks takes them all first, so that the child gets them
//!   open and what they guard whole. Their order is that of `before`: a thread that needs two takes them in
//!   this order.
//! - What is held for longer, or belongs to threads, is [`PerProcess`]: the child leaves its parent's alone and makes its
//!   own when it needs one. So are the engine and the compiler.
//! - What lists, queues, events, fences and kernels guard is [`Renewed`](crate::renew::Renewed): a child finds them at
//!   rest, with the settings and recordings that they had.
//! - OpenCL's runtime has locks and workers of its own, so a fork waits first until it is at rest.
//!
//! What the parent had under way is the parent's: the child sees neither its end nor its effect.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::command_list::CommandList;
use crate::context::Context;
use crate::event::{Event, EventPool};
use crate::fence::Fence;
use crate::handle::{Object, Shelf};
use crate::kernel::Kernel;
use crate::module::{BuildLog, Module};
use crate::opencl::rest;
use crate::queue::Queue;
use crate::{engine, usm};

/// How many forks lie between this process and the one that loaded the library, and one more.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// A number that is another one in a child of this process; never 0.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// State that a process shares with no child of a fork: a child finds a new one, and never looks at its parent's.
pub struct PerProcess<T>(AtomicPtr<(u32, T)>);

impl<T: Default + Send + Sync> PerProcess<T> {
    /// One that is made when it is first needed.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// This process's own.
    pub fn get(&self) -> &T {
        let found = self.0.load(Ordering::Acquire);
        // SAFETY: the pointer is null or a leaked box.
        match unsafe { found.as_ref() } {
            Some((generation, state)) if *generation == self::generation() => state,
            _ => self.renew(found),
        }
    }

    /// Makes one in the place of `found`, which is null or the parent's. That is never freed: a thread that the child
    /// does not have may have been changing it.
    fn renew(&self, found: *mut (u32, T)) -> &T {
        let ours = Box::into_raw(Box::new((generation(), T::default())));
        let exchanged = self
            .0
            .compare_exchange(found, ours, Ordering::AcqRel, Ordering::Acquire);
        let kept = exchanged.map_or_else(
            |theirs| {
                // SAFETY: no other thread has seen the box.
                drop(unsafe { Box::from_raw(ours) });
                theirs
            },
            |_| ours,
        );
        // SAFETY: a box that is never freed.
        unsafe { &(*kept).1 }
    }
}

impl<T: Default + Send + Sync> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The tables of all handles.
fn tables() -> [&'static dyn Shelf; 9] {
    [
        Context::table(),
        Queue::table(),
        CommandList::table(),
        Fence::table(),
        EventPool::table(),
        Event::table(),
        Module::table(),
        BuildLog::table(),
        Kernel::table(),
    ]
}

/// Sees to it that a child of this process works.
pub fn prepare() {
    static DONE: AtomicU32 = AtomicU32::new(0);
    if DONE.swap(1, Ordering::AcqRel) == 0 {
        // SAFETY: the handlers take locks that no caller of fork holds, and release what they took.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

extern "C" fn before() {
    rest::hold();
    usm::hold();
    for table in tables() {
        table.hold();
    }
}

extern "C" fn in_parent() {
    for table in tables() {
        table.release();
    }
    usm::release();
    rest::release();
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for table in tables() {
        table.inherit();
    }
    usm::inherit();
    rest::inherit();
    engine::forget();
}
