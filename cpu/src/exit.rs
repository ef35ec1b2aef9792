//! The end of the process: the checker's report.

use std::ptr;

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
        ("contexts", Context::table().len()),
        ("queues", Queue::table().len()),
        ("command lists", CommandList::table().len()),
        ("fences", Fence::table().len()),
        ("event pools", EventPool::table().len()),
        ("events", Event::table().len()),
        ("modules", Module::table().len()),
        ("kernels", Kernel::table().len()),
        ("physical memories", PhysicalMemory::table().len()),
    ];
    if let Some(status) = check::exiting(alive.into_iter()) {
        // SAFETY: null means all streams, whose buffers `_exit` would lose.
        unsafe {
            libc::fflush(ptr::null_mut());
            libc::_exit(status);
        }
    }
}
