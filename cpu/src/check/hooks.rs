//! What the rest of the runtime tells the checker, where [`is_on`](super::settings::is_on). What is told in several places asks
//! that itself.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::finding::{Finding, Kind};
use super::properties::Properties;
use super::settings::is_on;
use super::stack::Stack;
use super::watch::Watch;
use super::{commands, fault, poison, repeats, report, settings, table, threads};

/// The inaccessible bytes on each side of an allocation, at least.
pub const GUARD: usize = 64 << 10;

pub use super::commands::{host_signals, submit, waited_for_signal, waited_for_stream};
pub use super::table::exhume;

/// Watches a new allocation, whose pages are all inaccessible.
/// `None` if the system does not open them.
pub fn watch(properties: Properties) -> Option<Arc<Watch>> {
    fault::stay_installed();
    repeats::note_call();
    threads::note_host_thread();
    let watch = Arc::new(Watch::new(properties, poison::pattern())?);
    table::insert(Arc::clone(&watch));
    Some(watch)
}

/// Knows a new allocation in pages of the program or of another process, whose protection stays as it is: only its life is checked.
pub fn know(properties: Properties) -> Option<Arc<Watch>> {
    let watch = Arc::new(Watch::open(properties));
    table::insert(Arc::clone(&watch));
    Some(watch)
}

/// A command that is being submitted uses an allocation. What the process that has exported it does there, and when, is unknown.
pub fn pin(watch: &Arc<Watch>) {
    watch.pin();
    if let Some(id) = watch.exported_as
        && !watch.is_told.swap(true, Ordering::Relaxed)
    {
        let message = format!(
            "a command uses allocation {id} of another process; the order between processes is not checked"
        );
        report::add(
            Finding::here(Kind::IpcOrder, message).about(watch.base, Some(Arc::clone(watch))),
        );
    }
}

/// The program frees an allocation.
pub fn freeing(watch: &Watch, waits: bool) {
    // It was removed from the map of live allocations, so this is the only free.
    watch.freed.get_or_make(Stack::capture);
    if waits {
        return;
    }
    if let Some((what, stack)) = commands::using(watch) {
        let message = "memory is freed that a command in flight may use";
        let finding = Finding::here(Kind::FreeInUse, message)
            .about(watch.base, table::find(watch.base))
            .with(format!("{what} was submitted at"), stack);
        report::add(finding);
    }
}

/// The program frees an address that no allocation of the context has.
pub fn invalid_free(address: usize) {
    let watch = table::find(address);
    let message = match &watch {
        Some(watch) if watch.freed.get().is_some() => "memory is freed twice",
        Some(watch) if watch.base != address => "an address inside of an allocation is freed",
        Some(_) => "memory of another context is freed",
        None => "an address is freed that is no allocation's",
    };
    report::add(Finding::here(Kind::InvalidFree, message).about(address, watch));
}

/// An allocation is gone, after its free and the end of all commands that used it. `owner` unmaps its pages when dropped.
pub fn bury(watch: &Arc<Watch>, owner: Box<dyn Any + Send + Sync>) {
    // Its context may be what was destroyed.
    watch.freed.get_or_make(Stack::capture);
    if let Some(damaged) = table::bury(Arc::clone(watch), owner) {
        let message = "bytes beside an allocation were overwritten, which its free has found";
        let finding = Finding::here(Kind::OutOfBounds, message);
        report::add(finding.about(damaged, Some(Arc::clone(watch))));
    }
}

/// A command is given `length` bytes at `address`, which are not all in one live allocation. Returns whether they are
/// memory that the program must not use.
pub fn is_bad_range(address: usize, length: usize) -> bool {
    let last = address + length.saturating_sub(1);
    let Some(watch) = table::find(address).or_else(|| table::find(last)) else {
        return false;
    };
    let (kind, message, place) = if watch.freed.get().is_some() {
        if watch.distance(address) != 0 {
            return false;
        }
        let message = "a command is given freed memory";
        (Kind::UseAfterFree, message, address)
    } else if length > 0 {
        let message = "a command is given memory outside of an allocation";
        let outside = if watch.distance(address) < 0 {
            address
        } else {
            last
        };
        (Kind::OutOfBounds, message, outside)
    } else {
        return false;
    };
    report::add(Finding::here(kind, message).about(place, Some(watch)));
    length > 0
}

/// A command of a list, which is about to be executed, was given memory at `address` that has been freed since.
pub fn freed_since(address: usize) {
    let is_freed = |watch: &Arc<Watch>| watch.freed.get().is_some();
    let watch = table::find(address).filter(is_freed);
    let message = "a command that is executed uses memory that was freed after it was appended";
    report::add(Finding::here(Kind::UseAfterFree, message).about(address, watch));
}

/// A kernel is about to be in flight.
pub fn kernel_begins() {
    if is_on() {
        fault::stay_installed();
        threads::kernel_begins();
    }
}

/// A kernel in flight is about to access these places: they are opened now, which saves the faults of its first accesses. Of several
/// kernels, of which one follows another, only the accesses tell when they begin.
pub fn kernel_accesses(places: impl Iterator<Item = usize>) {
    if is_on() && threads::is_one_kernel() {
        places
            .filter_map(table::find)
            .for_each(|watch| watch.open_to_device());
    }
}

/// A kernel has ended.
pub fn kernel_ends() {
    if is_on() && threads::kernel_ends() {
        table::settle();
    }
}

/// A command of the context `context` uses memory of another one.
pub fn foreign_context(watch: &Watch, context: u64) {
    let message = format!(
        "a command of context {context} uses memory of context {}",
        watch.context
    );
    let finding = Finding::here(Kind::ForeignContext, message);
    report::add(finding.about(watch.base, table::find(watch.base)));
}

/// The host resets an event; `is_promised`: which a command in flight will signal.
pub fn host_resets(signal: usize, is_promised: bool) {
    if commands::host_resets(signal) || is_promised {
        let message = "an event is reset that a command signals, before the host has waited for it";
        report::add(Finding::here(Kind::EventInUse, message));
    }
}

/// The bytes at `from` are about to be copied to `to`.
///
/// # Safety
/// `length` bytes at `from` are readable for the calling thread.
#[inline]
pub unsafe fn copying(from: usize, length: usize, to: usize) {
    if is_on() && poison::is_wanted() && table::find(to).is_none_or(|watch| watch.kind != "device")
    {
        // SAFETY: the caller vouches for the bytes.
        unsafe { poison::look(from, length) };
    }
}

/// The process exits. `objects` are the kinds of handles, with how many are alive of each.
pub fn exiting(objects: impl Iterator<Item = (&'static str, usize)>) -> Option<i32> {
    if settings::get().leaks {
        for watch in table::live() {
            let message = "memory was never freed";
            let finding = Finding::at(Kind::Leak, message, Stack::default(), threads::thread_id());
            report::add(finding.about(watch.base, Some(watch)));
        }
        for (name, count) in objects.filter(|(_, count)| *count > 0) {
            let message = format!("{count} {name} were never destroyed");
            report::add(Finding::here(Kind::Leak, message));
        }
    }
    report::finish()
}
