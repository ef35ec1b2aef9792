//! Watched allocations: who may access their pages at the moment.
//!
//! Pages that the host must not access are closed. Device code opens them by its first access, which the fault handler
//! admits, and they are closed again when no command uses the allocation any more.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::stack::Stack;
use crate::process::sync::Mutex;

/// An allocation, with inaccessible guard pages around it.
#[derive(Debug)]
pub struct Watch {
    /// The allocation's id.
    pub id: u64,
    /// Address of the first byte.
    pub base: usize,
    /// Size in bytes, as asked for.
    pub size: usize,
    /// The kind of memory, in words.
    pub kind: &'static str,
    /// The id of its context.
    pub context: u64,
    /// All addresses, guard pages included.
    pub whole: Range<usize>,
    /// The pages of the allocation.
    pub pages: Range<usize>,
    /// Where it was allocated.
    pub allocated: Stack,
    /// Where it was freed.
    pub freed: OnceLock<Stack>,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Whether the host may access it.
    host: bool,
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
}

/// Whether kernels have opened allocations by pointers that no command names.
static FOLLOWED: AtomicBool = AtomicBool::new(false);

/// Whether kernels have opened allocations that no command names, since the last call.
pub fn take_followed() -> bool {
    FOLLOWED.load(Ordering::Relaxed) && FOLLOWED.swap(false, Ordering::AcqRel)
}

/// The bytes of an allocation's pages that are not part of it.
const PADDING: u8 = 0xb7;

/// What an access is to an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// The properties of a new allocation.
#[derive(Debug)]
pub struct Properties {
    /// As in [`Watch`].
    pub id: u64,
    /// As in [`Watch`].
    pub base: usize,
    /// As in [`Watch`].
    pub size: usize,
    /// As in [`Watch`].
    pub kind: &'static str,
    /// As in [`Watch`].
    pub context: u64,
    /// As in [`Watch`].
    pub whole: Range<usize>,
    /// As in [`Watch`].
    pub pages: Range<usize>,
    /// Whether the host may access it.
    pub host: bool,
}

impl Watch {
    /// Watches an allocation, whose pages are all accessible, from now on.
    pub fn new(properties: Properties) -> Self {
        let Properties {
            id,
            base,
            size,
            kind,
            context,
            whole,
            pages,
            host,
        } = properties;
        close(whole.start..pages.start);
        close(pages.end..whole.end);
        // SAFETY: the pages are a new mapping of ours, in which the allocation lies.
        unsafe {
            let fill = |from: usize, to: usize, value| {
                std::ptr::write_bytes(from as *mut u8, value, to - from);
            };
            fill(pages.start, base, PADDING);
            fill(base + size, pages.end, PADDING);
        }
        if !host {
            close(pages.clone());
        }
        let state = State {
            host,
            restricted: false,
            uses: 0,
            open: host,
            released: false,
            buried: false,
        };
        Self {
            id,
            base,
            size,
            kind,
            context,
            whole,
            pages,
            allocated: Stack::capture(),
            freed: OnceLock::new(),
            state: Mutex::new(state),
        }
    }

    /// Decides about an access that found the page closed, and opens it in any case, so that the program goes on.
    pub fn access(&self, address: usize, by_device: bool) -> Access {
        let mut state = self.state.lock();
        if !self.pages.contains(&address) {
            let page = address / crate::system::PAGE * crate::system::PAGE;
            open(page..page + crate::system::PAGE);
            return if state.buried {
                Access::Freed
            } else {
                Access::Outside
            };
        }
        open(self.pages.clone());
        state.open = true;
        if by_device && state.uses == 0 {
            FOLLOWED.store(true, Ordering::Release);
        }
        if state.buried {
            Access::Freed
        } else if by_device {
            Access::Allowed
        } else if state.host {
            Access::Pending
        } else {
            Access::Host
        }
    }

    /// Keeps the host out until [`permit`](Self::permit); `false` if it is kept out already.
    pub fn restrict(&self) -> bool {
        let mut state = self.state.lock();
        if !state.host || state.released || state.buried {
            return false;
        }
        close(self.pages.clone());
        state.open = false;
        !std::mem::replace(&mut state.restricted, true)
    }

    /// Lets the host in again.
    pub fn permit(&self) {
        let mut state = self.state.lock();
        if state.restricted && !state.buried {
            open(self.pages.clone());
            state.open = true;
        }
        state.restricted = false;
    }

    /// Forgets the commands of the parent, in the child of a fork.
    pub fn child(&self) {
        self.permit();
        let mut state = self.state.lock();
        state.uses = 0;
        state.settle(self);
    }

    /// A submitted command uses it.
    pub fn pin(&self) {
        self.state.lock().uses += 1;
    }

    /// A command that used it is complete.
    pub fn unpin(&self) {
        let mut state = self.state.lock();
        // A child of a fork has the pins of its parent's commands, which are not counted there.
        state.uses = state.uses.saturating_sub(1);
        state.settle(self);
    }

    /// Closes it if no command uses it, after kernels that may have followed pointers to it.
    pub fn settle(&self) {
        self.state.lock().settle(self);
    }

    /// Ends the watch: all pages become accessible for good, as other processes share them.
    pub fn release(&self) {
        let mut state = self.state.lock();
        open(self.whole.clone());
        (state.released, state.host, state.open) = (true, true, true);
        state.restricted = false;
    }

    /// Whether the watch has ended.
    pub fn is_released(&self) -> bool {
        self.state.lock().released
    }

    /// Closes it for all, after it was freed. Its memory goes back to the system, its addresses stay taken. Returns the
    /// address of a byte beside the allocation that was overwritten.
    pub fn bury(&self) -> Option<usize> {
        let mut state = self.state.lock();
        open(self.pages.clone());
        let end = self.base + self.size;
        let damaged = (end..self.pages.end)
            .chain(self.pages.start..self.base)
            // SAFETY: the pages are accessible, and no longer in use.
            .find(|address| unsafe { *(*address as *const u8) } != PADDING);
        close(self.whole.clone());
        // SAFETY: the pages are a mapping of ours, whose bytes are not needed any more.
        unsafe {
            libc::madvise(
                self.pages.start as *mut _,
                self.pages.len(),
                libc::MADV_DONTNEED,
            )
        };
        (state.buried, state.open) = (true, false);
        damaged
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
    fn settle(&mut self, watch: &Watch) {
        let closed = !self.host || self.restricted;
        if self.uses == 0 && self.open && closed && !self.buried {
            close(watch.pages.clone());
            self.open = false;
        }
    }
}

fn open(range: Range<usize>) {
    protect(range, libc::PROT_READ | libc::PROT_WRITE);
}

fn close(range: Range<usize>) {
    protect(range, libc::PROT_NONE);
}

fn protect(range: Range<usize>, protection: i32) {
    // SAFETY: callers pass pages of a watched allocation, whose owner has left their protection to the watch. A failure
    // (too many mappings) leaves them as they are, and only makes the checker miss an access.
    unsafe { libc::mprotect(range.start as *mut _, range.len(), protection) };
}
