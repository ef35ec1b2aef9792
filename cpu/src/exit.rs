//! The end of the process: the checker's report.

use crate::check;
use crate::command_list::CommandList;
use crate::context::Context;
use crate::event::{Event, EventPool};
use crate::handle::Object;
use crate::kernel::Kernel;
use crate::module::Module;
use crate::queue::Queue;
use crate::queue::fence::Fence;
use crate::virtual_memory::PhysicalMemory;

/// Called by the dynamic loader, after the handlers of `atexit`.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    if !check::is_on() {
        return;
    }
    let alive = [
        ("contexts", Context::table().all().len()),
        ("queues", Queue::table().all().len()),
        ("command lists", CommandList::table().all().len()),
        ("fences", Fence::table().all().len()),
        ("event pools", EventPool::table().all().len()),
        ("events", Event::table().all().len()),
        ("modules", Module::table().all().len()),
        ("kernels", Kernel::table().all().len()),
        ("physical memories", PhysicalMemory::table().all().len()),
    ];
    if let Some(status) = check::exiting(alive.into_iter()) {
        // The C library continues this exit with another status. It flushes streams as at any exit: `fflush` would wait for
        // a stream in which another thread reads.
        // SAFETY: glibc permits the call in a function that `exit` runs (the comment of its `__run_exit_handlers`).
        unsafe { libc::exit(status) };
    }
}
