//! The file of an event pool that processes share, and the thread that watches it.
//!
//! The file has a head and one [`Slot`] for each event. Each process has signals of its own for the events: their state is
//! the slot's, and the commands and host threads that wait for them are known to their process alone. Whichever process
//! sets a slot counts that in the head and wakes one thread in each process, which refreshes the signals of that process.

use std::fs::File;
use std::mem;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use rustix::thread::futex;
use zeusm_process::{Local, Mutex, OwnFile};

use crate::engine::{SharedState, Signal, dispatch};
use crate::memory::{Mapping, PAGE, ShareError, own_memory_file};
use crate::system::signals;

const MAGIC: u64 = u64::from_le_bytes(*b"zeusmevp");

/// The beginning of the file. The fields that are not atomic do not change.
#[repr(C, align(64))]
struct Head {
    magic: u64,
    flags: u32,
    count: u32,
    /// How often any slot was set.
    changes: AtomicU32,
}

/// An event.
#[repr(C, align(32))]
struct Slot {
    /// How often it was set, doubled, plus one while it is set.
    state: AtomicU64,
    started: AtomicU64,
    ended: AtomicU64,
}

/// The mapped file.
pub struct Board {
    file: OwnFile,
    mapping: Mapping,
    /// The pool's flags, as in the head, which other processes could change.
    pub flags: u32,
    /// How many events there are.
    pub count: u32,
}

/// The length of the file for `count` events.
fn length(count: u32) -> Option<usize> {
    let slots = mem::size_of::<Slot>().checked_mul(count as usize)?;
    mem::size_of::<Head>()
        .checked_add(slots)?
        .checked_next_multiple_of(PAGE)
}

impl Board {
    /// A new file for `count` events that are not set, of a pool with these flags.
    pub fn create(flags: u32, count: u32) -> Result<Self, ShareError> {
        let too_large = ShareError::new("mmap", libc::ENOMEM);
        let length = length(count).ok_or(too_large)?;
        let file = own_memory_file(length as u64)?;
        let mapping = file
            .get()
            .and_then(|file| Mapping::of_file(file, 0, length));
        let mapping = mapping.ok_or(too_large)?;
        // SAFETY: the mapping is large enough, aligned to a page, and not yet known to any other thread or process.
        unsafe {
            (mapping.address() as *mut Head).write(Head {
                magic: MAGIC,
                flags,
                count,
                changes: AtomicU32::new(0),
            });
        }
        Ok(Self {
            file,
            mapping,
            flags,
            count,
        })
    }

    /// The board in a memory file of this runtime; `None` if it has another content.
    pub fn open(file: File) -> Option<Self> {
        let size = usize::try_from(file.metadata().ok()?.len()).ok()?;
        let mapping = Mapping::of_file(&file, 0, size)?;
        // SAFETY: no empty file can be mapped, so the mapping has a page, and the file cannot shrink. Only a board's changes are written
        // by other processes; the fields of another file are plain numbers of whatever value, read once.
        let (magic, flags, count) = unsafe {
            let head = mapping.address() as *const Head;
            (
                (&raw const (*head).magic).read_volatile(),
                (&raw const (*head).flags).read_volatile(),
                (&raw const (*head).count).read_volatile(),
            )
        };
        if magic != MAGIC || length(count) != Some(size) {
            return None;
        }
        Some(Self {
            file: OwnFile::new(file).ok()?,
            mapping,
            flags,
            count,
        })
    }

    /// The file; `None` when the program has closed its descriptor.
    pub fn file(&self) -> Option<&File> {
        self.file.get()
    }

    fn changes(&self) -> &AtomicU32 {
        // SAFETY: the mapping begins with a head and lives as long as `self`.
        unsafe { &(*(self.mapping.address() as *const Head)).changes }
    }

    fn slot(&self, index: u32) -> &Slot {
        assert!(index < self.count, "the event's index was checked");
        let slots = self.mapping.address() + mem::size_of::<Head>();
        // SAFETY: the mapping has `count` slots behind the head and lives as long as `self`. All fields are atomics.
        unsafe { &*(slots as *const Slot).add(index as usize) }
    }

    /// Wakes the threads of all processes that watch the board.
    fn announce(&self) {
        self.changes().fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(self.changes(), futex::Flags::empty(), u32::MAX >> 1);
    }
}

/// A board and the signals of this process that are watched.
pub struct Watcher {
    /// The board.
    pub board: Arc<Board>,
    /// A fork's child has no thread, and watches a signal again when it waits for it.
    watched: Local<Mutex<Watched>>,
}

#[derive(Default)]
struct Watched {
    has_thread: bool,
    signals: Vec<Weak<Signal>>,
}

impl Watcher {
    /// A watcher without a thread, which is started by the first wait.
    pub fn new(board: Board) -> Self {
        Self {
            board: Arc::new(board),
            watched: Local::new(),
        }
    }

    /// A signal of the event with this index.
    pub fn signal(self: &Arc<Self>, index: u32, timed: bool) -> Arc<Signal> {
        Signal::shared(timed, |signal| SharedEvent {
            watcher: Arc::clone(self),
            index,
            signal: Weak::clone(signal),
        })
    }

    /// Adds a signal; returns whether a thread watches it.
    fn watch(self: &Arc<Self>, signal: &Weak<Signal>) -> bool {
        let mut watched = self.watched.get_or_default().lock();
        watched
            .signals
            .retain(|known| known.strong_count() > 0 && !known.ptr_eq(signal));
        watched.signals.push(Weak::clone(signal));
        if !watched.has_thread {
            let (board, watcher) = (Arc::clone(&self.board), Arc::downgrade(self));
            let thread = thread::Builder::new().name("zeusm-cpu-event".to_owned());
            watched.has_thread = thread
                .spawn(move || {
                    signals::leave_to_application();
                    serve(&board, &watcher);
                })
                .is_ok();
        }
        watched.has_thread
    }

    /// The watched signals that live.
    fn signals(&self) -> Vec<Arc<Signal>> {
        let watched = self.watched.get_or_default().lock();
        watched.signals.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for Watcher {
    /// Ends the thread.
    fn drop(&mut self) {
        self.board.announce();
    }
}

/// The loop of a watcher's thread: after each change, refreshes the signals.
fn serve(board: &Board, watcher: &Weak<Watcher>) {
    loop {
        let seen = board.changes().load(Ordering::Acquire);
        let Some(signals) = watcher.upgrade().map(|watcher| watcher.signals()) else {
            return;
        };
        for signal in signals {
            dispatch(signal.refresh());
        }
        // An error means that something has changed, or a signal's handler ran.
        let _ = futex::wait(board.changes(), futex::Flags::empty(), seen, None);
    }
}

/// What the state of a slot tells: whether it is set, and how often it was set.
fn told(state: u64) -> (bool, u64) {
    (state & 1 != 0, state >> 1)
}

/// The state of one event.
struct SharedEvent {
    watcher: Arc<Watcher>,
    index: u32,
    signal: Weak<Signal>,
}

impl SharedEvent {
    fn slot(&self) -> &Slot {
        self.watcher.board.slot(self.index)
    }
}

impl SharedState for SharedEvent {
    fn read(&self) -> (bool, u64) {
        told(self.slot().state.load(Ordering::Acquire))
    }

    fn set(&self, started: u64, ended: u64) -> (bool, u64) {
        let slot = self.slot();
        slot.started.store(started, Ordering::Relaxed);
        slot.ended.store(ended, Ordering::Relaxed);
        let next = |state: u64| Some(((state >> 1) + 1) << 1 | 1);
        let before = slot
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
        self.watcher.board.announce();
        told(before.unwrap_or_else(|state| state))
    }

    fn reset(&self) {
        self.slot().state.fetch_and(!1, Ordering::AcqRel);
    }

    fn times(&self) -> (u64, u64) {
        let slot = self.slot();
        let read = |time: &AtomicU64| time.load(Ordering::Relaxed);
        (read(&slot.started), read(&slot.ended))
    }

    fn watch(&self) -> bool {
        self.watcher.watch(&self.signal)
    }
}
