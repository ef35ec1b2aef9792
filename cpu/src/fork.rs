//! Forks: a child has the memory of its parent but only the thread that forked.
//!
//! Four rules make a child work, however many threads of the parent were inside the runtime:
//! - Locks that are held for microseconds guard what the child inherits: the handles' tables, the allocations, the blocks
//!   that they are cut from, the exports. The thread that forks takes them all first, so that the child gets them
//!   open and what they guard whole. Their order is that of `before`: a thread that needs two takes them in
//!   this order.
//! - What is held for longer, or belongs to threads, is [`PerProcess`](process::PerProcess): the child leaves its parent's alone and makes its
//!   own when it needs one. So are the engine and the compiler.
//! - What lists, queues, events, fences and kernels guard is [`Renewed`](process::renew::Renewed): a child finds them at
//!   rest, with the settings and recordings that they had.
//! - OpenCL's runtime has locks and workers of its own, so a fork waits first until it is at rest.
//!
//! What the parent had under way is the parent's: the child sees neither its end nor its effect.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::command_list::CommandList;
use crate::context::Context;
use crate::event::{Event, EventPool};
use crate::handle::{Object, Shelf};
use crate::kernel::Kernel;
use crate::module::{BuildLog, Module};
use crate::opencl::rest;
use crate::queue::Queue;
use crate::queue::fence::Fence;
use crate::{engine, memory, process};

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
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::AcqRel) {
        // SAFETY: the handlers take locks that no caller of fork holds, and release what they took.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

extern "C" fn before() {
    rest::hold();
    memory::hold();
    for table in tables() {
        table.hold();
    }
}

extern "C" fn in_parent() {
    for table in tables() {
        table.release();
    }
    memory::release();
    rest::release();
}

extern "C" fn in_child() {
    process::begin_generation();
    for table in tables() {
        table.inherit();
    }
    memory::inherit();
    rest::inherit();
    engine::forget();
}
