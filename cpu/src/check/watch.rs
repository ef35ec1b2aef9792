//! Watched allocations: who may access their pages at the moment.
//!
//! Pages that the host must not access are closed. Device code opens them by its first access, which the fault handler
//! admits, and they are closed again when no command uses the allocation any more.

use std::ops::{Deref, Range};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use zeusm_process::{AtFork, ForkLock, Lazy, Mutex, MutexGuard, RwLockReadGuard};

use super::properties::Properties;
use super::stack::Stack;
use crate::system::PAGE;

/// An allocation that is watched.
#[derive(Debug)]
pub struct Watch {
    properties: Properties,
    /// Where it was allocated.
    pub allocated: Stack,
    /// Where it was freed.
    pub freed: Lazy<Stack>,
    /// Whether it was told that the order with the process that has exported it is not checked.
    pub is_told: AtomicBool,
    state: Mutex<State>,
}

impl Deref for Watch {
    type Target = Properties;

    fn deref(&self) -> &Properties {
        &self.properties
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Whether the host has to wait for commands before it may.
    restricted: bool,
    /// How many submitted commands use it.
    uses: usize,
    /// Whether the pages are accessible now.
    open: bool,
    /// Whether the memory is shared with other processes, and so no longer watched.
    released: bool,
    /// Whether it has been freed, and is in quarantine.
    buried: bool,
    /// Whether a page beside its own was opened for an access that was reported.
    breached: bool,
    /// Whether pages that such an access has opened stay open until the next call.
    left: bool,
    /// Whether its pages were ever open, and so the bytes beside it are filled.
    filled: bool,
    /// The first byte beside it that was overwritten.
    damaged: Option<usize>,
}

/// Threads that change a watch share it. A fork holds it alone, so that its child finds all watches unlocked, and the
/// protection of their pages as they say.
static CHANGES: ForkLock<()> = ForkLock::new(());

/// The lock of changes, which a fork holds alone.
pub fn at_fork() -> &'static dyn AtFork {
    &CHANGES
}

/// Whether kernels have opened allocations by pointers that no command names.
static FOLLOWED: AtomicBool = AtomicBool::new(false);

/// Whether kernels have opened allocations that no command names, since the last call.
pub fn take_followed() -> bool {
    FOLLOWED.load(Ordering::Relaxed) && FOLLOWED.swap(false, Ordering::AcqRel)
}

/// The bytes of an allocation's pages that are not part of it.
const PADDING: u8 = 0xb7;

/// The most bytes of a freed allocation that stay in memory as long as its addresses, which saves system calls.
const KEPT: usize = 4 * PAGE;

/// What an access is to an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It is allowed.
    Allowed,
    /// The host accesses memory that only the device may.
    Host,
    /// The host accesses an allocation that commands use which it has not waited for.
    Pending,
    /// It is beyond the allocation.
    Outside,
    /// The allocation has been freed.
    Freed,
    /// The system does not open the page, as the process has too many mappings.
    Refused,
}

impl Watch {
    /// Watches an allocation, whose pages are all inaccessible, from now on. Its memory is filled with words of `pattern`.
    /// `None` if the system does not open them, as the process has too many mappings.
    pub fn new(properties: Properties, pattern: Option<u64>) -> Option<Self> {
        let watch = Self::with(properties, State::default());
        // Pages of the device stay as they are until its first access, which saves system calls.
        if watch.host || pattern.is_some() {
            let (_shared, mut state) = watch.change();
            state.open(&watch);
            if !state.open {
                return None;
            }
            pattern.inspect(|pattern| watch.fill(*pattern));
            state.settle(&watch);
        }
        Some(watch)
    }

    /// An allocation whose pages stay accessible.
    pub fn open(properties: Properties) -> Self {
        let state = State {
            released: true,
            open: true,
            ..State::default()
        };
        Self::with(properties, state)
    }

    fn with(properties: Properties, state: State) -> Self {
        Self {
            properties,
            allocated: Stack::capture(),
            freed: Lazy::new(),
            is_told: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    /// The state, which no fork interrupts while the guards exist. They are dropped in reverse order.
    fn change(&self) -> (RwLockReadGuard<'static, ()>, MutexGuard<'_, State>) {
        (CHANGES.read(), self.state.lock())
    }

    /// Decides about an access that found the page closed, and opens it in any case, so that the program goes on.
    pub fn access(&self, address: usize, by_device: bool) -> Access {
        let (_shared, mut state) = self.change();
        if !self.pages.contains(&address) {
            let page = address / PAGE * PAGE;
            state.breached = true;
            return if !open(page..page + PAGE) {
                Access::Refused
            } else if state.buried {
                Access::Freed
            } else {
                Access::Outside
            };
        }
        state.open(self);
        if !state.open {
            return Access::Refused;
        }
        if by_device && state.uses == 0 {
            FOLLOWED.store(true, Ordering::Release);
        }
        if state.buried {
            Access::Freed
        } else if by_device {
            Access::Allowed
        } else if self.host {
            Access::Pending
        } else {
            Access::Host
        }
    }

    /// Closes what accesses that were reported have opened, unless it may be open now.
    pub fn close_again(&self) {
        let (_shared, mut state) = self.change();
        state.left = false;
        if state.released {
            return;
        }
        if state.breached {
            self.close_guards();
        }
        state.close_own(self);
    }

    /// What an access has opened stays open until Level Zero is called.
    pub fn leave_open(&self) {
        let (_shared, mut state) = self.change();
        state.left = true;
    }

    /// Whether something was left open.
    pub fn is_left(&self) -> bool {
        let (_shared, state) = self.change();
        state.left
    }

    fn close_guards(&self) {
        close(self.whole.start..self.pages.start);
        close(self.pages.end..self.whole.end);
    }

    /// Keeps the host out until [`permit`](Self::permit); `false` if it is kept out already.
    pub fn restrict(&self) -> bool {
        let (_shared, mut state) = self.change();
        if !self.host || state.released || state.buried {
            return false;
        }
        state.close(self);
        !std::mem::replace(&mut state.restricted, true)
    }

    /// Lets the host in again.
    pub fn permit(&self) {
        let (_shared, mut state) = self.change();
        if state.restricted && !state.buried {
            state.open(self);
        }
        state.restricted = false;
    }

    /// Forgets the commands of the parent, in the child of a fork, and protects all pages anew: of memory that was in a
    /// file, the child has a copy that is accessible throughout.
    pub fn child(&self) {
        let (_shared, mut state) = self.change();
        (state.uses, state.restricted, state.left) = (0, false, false);
        if state.released {
            return;
        }
        self.close_guards();
        if self.host && !state.buried {
            state.open(self);
        } else {
            state.close(self);
        }
    }

    /// A submitted command uses it.
    pub fn pin(&self) {
        let (_shared, mut state) = self.change();
        state.uses += 1;
    }

    /// A submitted command that uses it begins: opens what only the device may access.
    pub fn open_to_device(&self) {
        let (_shared, mut state) = self.change();
        let is_closed = !state.open && !state.buried;
        if is_closed && state.uses > 0 && !self.host {
            state.open(self);
        }
    }

    /// A command that used it is complete.
    pub fn unpin(&self) {
        let (_shared, mut state) = self.change();
        // A child of a fork has the pins of its parent's commands, which are not counted there.
        state.uses = state.uses.saturating_sub(1);
        state.settle(self);
    }

    /// Closes it if no command uses it, after kernels that may have followed pointers to it.
    pub fn settle(&self) {
        let (_shared, mut state) = self.change();
        state.settle(self);
    }

    /// Ends the watch: all pages become accessible for good, as other processes share them.
    pub fn release(&self) {
        let (_shared, mut state) = self.change();
        open(self.whole.clone());
        (state.released, state.open, state.restricted) = (true, true, false);
    }

    /// Whether the watch has ended.
    pub fn is_released(&self) -> bool {
        let (_shared, state) = self.change();
        state.released
    }

    /// Closes it for all, after it was freed. Its memory goes back to the system, unless it is little, and its addresses stay taken.
    /// Returns the address of a byte beside the allocation that was overwritten.
    pub fn bury(&self) -> Option<usize> {
        let (_shared, mut state) = self.change();
        state.compare(self);
        if state.breached {
            empty(self.whole.clone());
        } else if state.filled && self.pages.len() > KEPT {
            empty(self.pages.clone());
        } else if state.open {
            close(self.pages.clone());
        }
        (state.buried, state.open) = (true, false);
        state.damaged
    }

    /// The bytes of its pages that are not part of it.
    fn padding(&self) -> [Range<usize>; 2] {
        let end = self.base + self.size;
        [end..self.pages.end, self.pages.start..self.base]
    }

    /// Fills the allocation.
    fn fill(&self, pattern: u64) {
        let words = self.base as *mut u64;
        // SAFETY: the pages are accessible mappings of ours, which no one has used yet; the allocation is aligned to more
        // than a word.
        (0..self.size / size_of::<u64>()).for_each(|at| unsafe { words.add(at).write(pattern) });
    }

    /// How far `address` is from the allocation: negative before it, 0 inside.
    pub fn distance(&self, address: usize) -> i64 {
        let end = self.base + self.size;
        if address < self.base {
            -((self.base - address) as i64)
        } else if address >= end {
            (address - end) as i64 + 1
        } else {
            0
        }
    }
}

impl State {
    /// Opens the pages, unless the system refuses. The first time, the bytes beside the allocation are filled.
    fn open(&mut self, watch: &Watch) {
        self.open = open(watch.pages.clone());
        if self.open && !self.filled {
            for around in watch.padding() {
                // SAFETY: the pages are accessible mappings of ours, and no one but a wrong program writes there.
                unsafe { (around.start as *mut u8).write_bytes(PADDING, around.len()) };
            }
            self.filled = true;
        }
    }

    /// Closes the pages.
    fn close(&mut self, watch: &Watch) {
        self.compare(watch);
        close(watch.pages.clone());
        self.open = false;
    }

    /// Closes the pages, unless the host may access them.
    fn close_own(&mut self, watch: &Watch) {
        let is_kept_out = !watch.host && !self.released;
        if is_kept_out || self.restricted || self.buried {
            self.close(watch);
        }
    }

    /// Looks for damage beside the allocation, before its pages are closed.
    fn compare(&mut self, watch: &Watch) {
        const EXPECTED: [u8; PAGE] = [PADDING; PAGE];
        if !self.open || self.buried || self.damaged.is_some() {
            return;
        }
        self.damaged = watch.padding().into_iter().find_map(|around| {
            // SAFETY: the pages are accessible, and mappings of ours.
            let found = unsafe { slice::from_raw_parts(around.start as *const u8, around.len()) };
            if EXPECTED.get(..found.len()) == Some(found) {
                return None;
            }
            let at = found.iter().position(|it| *it != PADDING)?;
            Some(around.start + at)
        });
    }

    fn settle(&mut self, watch: &Watch) {
        if self.uses == 0 && self.open && !self.buried {
            self.close_own(watch);
        }
    }
}

/// Whether the pages are accessible now.
fn open(range: Range<usize>) -> bool {
    protect(range, MprotectFlags::READ | MprotectFlags::WRITE)
}

/// If this fails (too many mappings), the checker misses an access.
fn close(range: Range<usize>) {
    protect(range, MprotectFlags::empty());
}

/// Makes the pages inaccessible, and gives their memory back to the system.
fn empty(range: Range<usize>) {
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: callers pass pages of a watched allocation that is freed, whose bytes are not needed any more. If this fails (too many
    // mappings), the checker misses an access.
    let _ = unsafe {
        mmap_anonymous(
            range.start as *mut _,
            range.len(),
            ProtFlags::empty(),
            flags,
        )
    };
}

fn protect(range: Range<usize>, protection: MprotectFlags) -> bool {
    // SAFETY: callers pass pages of a watched allocation, whose owner has left their protection to the watch. A failure
    // leaves them as they are.
    unsafe { mprotect(range.start as *mut _, range.len(), protection) }.is_ok()
}
