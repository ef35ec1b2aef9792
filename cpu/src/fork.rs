//! Forks: a child has the memory of its parent but only the thread that forked.
//!
//! A child works, however many threads of the parent were inside the runtime, by four rules:
//! - Locks that are held for microseconds guard the tables that a child inherits: handles, allocations, arenas and
//!   exports. The forking thread takes all of them first, so that the child gets them unlocked and the tables
//!   consistent. Lock order is that of `held`, in all threads.
//! - State whose locks are held for longer, or that belongs to threads, is [`Local`](zeusm_process::Local): a child
//!   does not touch its parent's and creates its own on first use. The engine and the compiler are replaced in the same
//!   way.
//! - The state of lists, queues, events, fences and kernels is [`ForkSafe`](zeusm_process::ForkSafe): a child
//!   finds them idle, with their settings and recorded commands.
//! - The OpenCL runtime has locks and workers of its own, so a fork first waits until it is quiescent; for 20 ms at most,
//!   if the child is expected to start another program.
//!
//! One thread forks at a time: the C library runs the handlers of several at once, and the first to end its fork would
//! otherwise let calls of OpenCL begin while another one forks.
//!
//! Commands in flight in the parent complete in the parent only; the child sees neither their completion nor their
//! effects.

use std::sync::atomic::{AtomicBool, Ordering};

use zeusm_process::{AtFork, ForkLock};

use crate::announcement;
use crate::command_list::CommandList;
use crate::context::Context;
use crate::event::{Event, EventPool};
use crate::handle::Object;
use crate::images::Image;
use crate::kernel::Kernel;
use crate::module::{BuildLog, Module};
use crate::opencl::{Sampler, quiesce};
use crate::queue::Queue;
use crate::queue::fence::Fence;
use crate::virtual_memory::PhysicalMemory;
use crate::{check, front, memory, virtual_memory};

/// Held by the thread that forks, from the first handler to the last.
static FORKING: ForkLock<()> = ForkLock::new(());

/// What a fork holds beside that, in the order in which threads lock it; at last the tables of all handles.
fn held() -> impl DoubleEndedIterator<Item = &'static dyn AtFork> {
    let tables: [&'static dyn AtFork; 12] = [
        Context::table(),
        Queue::table(),
        CommandList::table(),
        Fence::table(),
        EventPool::table(),
        Event::table(),
        Module::table(),
        BuildLog::table(),
        Kernel::table(),
        PhysicalMemory::table(),
        Image::table(),
        Sampler::table(),
    ];
    let reservations = [virtual_memory::at_fork()].into_iter();
    let memory = reservations.chain(memory::at_fork());
    memory.chain(check::at_fork()).chain(tables)
}

/// Registers the handlers with the C library, once.
pub fn register_handlers() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::AcqRel) {
        zeusm_process::register(Some(prepare), Some(parent), Some(child));
    }
}

extern "C" fn prepare() {
    FORKING.prepare();
    quiesce::prepare(announcement::take());
    held().for_each(|it| it.prepare());
}

extern "C" fn parent() {
    held().rev().for_each(|it| it.parent());
    quiesce::parent();
    FORKING.parent();
}

extern "C" fn child() {
    held().rev().for_each(|it| it.child());
    // Memory has replaced blocks, whose pages the checker closes.
    check::child();
    quiesce::child();
    front::child();
    FORKING.child();
}
