//! The recorder: a ring of events, and the live blocks.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::event::{Action, Event, Failure, Holder, LiveBlock, Place, Thread};
use super::operation::{Executed, Operation, in_order};

/// How to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The largest number of events that are kept, and of operations; the oldest are dropped. `None` for no limit.
    pub max_events: Option<usize>,
}

/// What was recorded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recording {
    /// The time of the start.
    pub start: SystemTime,
    /// The events in the order of their times.
    pub events: Vec<Event>,
    /// The number of events before them, which were dropped.
    pub dropped: u64,
    /// The blocks by address that were allocated during the recording and are not freed. Dropped events count, too.
    pub live: HashMap<usize, LiveBlock>,
    /// The failures whose events are kept.
    pub failures: Vec<Failure>,
    /// The threads of the events.
    pub threads: Vec<Thread>,
    /// The operations of queues that were submitted during the recording and are complete, in the order of their start.
    pub operations: Vec<Operation>,
    /// The number of operations before them, which were dropped.
    pub dropped_operations: u64,
}

/// The smallest number of operations over the maximum with which the oldest are dropped.
const LEAST_EXCESS: usize = 64;

/// The state of a recording.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    options: Options,
    /// The number of this recording in the process.
    number: u32,
    start: (Instant, SystemTime),
    events: VecDeque<Event>,
    dropped: u64,
    live: HashMap<usize, LiveBlock>,
    /// `Failure::event` counts from the first event, dropped or not.
    failures: VecDeque<Failure>,
    threads: Vec<Thread>,
    pub(super) operations: Vec<Executed>,
    dropped_operations: u64,
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

thread_local! {
    /// The recording that this thread is known to, and its index there. Without a destructor, so that a thread can record
    /// until its end.
    static KNOWN: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

impl Recorder {
    pub(super) fn new(options: Options) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self {
            options,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            start: (Instant::now(), SystemTime::now()),
            events: VecDeque::new(),
            dropped: 0,
            live: HashMap::new(),
            failures: VecDeque::new(),
            threads: Vec::new(),
            operations: Vec::new(),
            dropped_operations: 0,
        }
    }

    pub(super) fn add(
        &mut self,
        action: Action,
        address: usize,
        size: usize,
        place: &Place,
        hit: Option<bool>,
        stack: Option<u32>,
    ) {
        let time = nanoseconds(self.start.0.elapsed());
        match action {
            Action::Allocate => {
                let block = LiveBlock {
                    time,
                    size,
                    place: *place,
                    stack,
                };
                self.live.insert(address, block);
            }
            Action::Free => {
                self.live.remove(&address);
            }
            Action::Reserve | Action::Release | Action::Trim | Action::Fail => {}
        }
        let thread = self.thread();
        self.events.push_back(Event {
            time,
            action,
            address,
            size,
            place: *place,
            thread,
            stack,
            hit,
        });
        if let Some(most) = self.options.max_events {
            while self.events.len() > most {
                self.events.pop_front();
                self.dropped += 1;
            }
        }
    }

    /// Adds what is known of the last event, a failure.
    pub(super) fn add_failure(&mut self, failure: Failure) {
        let count = self.dropped as usize + self.events.len();
        let event = count.saturating_sub(1);
        self.failures.push_back(Failure { event, ..failure });
        while let Some(first) = self.failures.front()
            && first.event < self.dropped as usize
        {
            self.failures.pop_front();
        }
    }

    /// Adds those of the operations that were submitted during the recording.
    pub(super) fn add_operations(&mut self, executed: Vec<Executed>) {
        for mut executed in executed {
            let submission = executed.submission.checked_duration_since(self.start.0);
            if let Some(submission) = submission {
                executed.operation.time = nanoseconds(submission + executed.delay);
                self.operations.push(executed);
            }
        }
        let most = self.options.max_events.unwrap_or(usize::MAX);
        // The operations of other queues may be added later and have started earlier, so the oldest are dropped by time; in
        // large numbers, as they have to be sorted.
        if self.operations.len() >= most.saturating_mul(2).saturating_add(LEAST_EXCESS) {
            self.operations.sort_by_key(|it| it.operation.time);
            let excess = self.operations.len() - most;
            self.operations.drain(..excess);
            self.dropped_operations += excess as u64;
        }
    }

    /// The index of this thread.
    fn thread(&mut self) -> u32 {
        let (recording, index) = KNOWN.get();
        if recording == self.number {
            return index;
        }
        let index = self.threads.len() as u32;
        self.threads.push(this_thread());
        KNOWN.set((self.number, index));
        index
    }

    /// The live blocks of each stack in each place.
    pub(super) fn held(&self) -> Held {
        let mut held = Held::new();
        for block in self.live.values() {
            let (bytes, blocks) = held.entry((block.place, block.stack)).or_default();
            *bytes += block.size;
            *blocks += 1;
        }
        held
    }

    pub(super) fn into_recording(mut self) -> Recording {
        let mut operations = in_order(self.operations);
        let most = self.options.max_events.unwrap_or(usize::MAX);
        let excess = operations.len().saturating_sub(most);
        operations.drain(..excess);
        self.failures.retain_mut(|failure| {
            let event = failure.event.checked_sub(self.dropped as usize);
            event.map(|event| failure.event = event).is_some()
        });
        Recording {
            failures: self.failures.into(),
            start: self.start.1,
            events: self.events.into(),
            dropped: self.dropped,
            live: self.live,
            threads: self.threads,
            operations,
            dropped_operations: self.dropped_operations + excess as u64,
        }
    }
}

/// The requested bytes of live blocks and their number, by place and stack.
pub(super) type Held = HashMap<(Place, Option<u32>), (usize, usize)>;

/// The stacks with the most bytes in those places that count, at most `count` of them.
pub(super) fn holders(held: Held, counts: impl Fn(&Place) -> bool, count: usize) -> Vec<Holder> {
    let mut sums = HashMap::<Option<u32>, Holder>::new();
    for ((place, stack), (bytes, blocks)) in held {
        if counts(&place) {
            let holder = sums.entry(stack).or_insert(Holder {
                stack,
                bytes: 0,
                blocks: 0,
            });
            holder.bytes += bytes;
            holder.blocks += blocks;
        }
    }
    let mut holders: Vec<Holder> = sums.into_values().collect();
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.stack));
    holders.truncate(count);
    holders
}

/// The calling thread, by the system's number and name.
#[cfg(target_os = "linux")]
fn this_thread() -> Thread {
    let id = rustix::thread::gettid().as_raw_pid().unsigned_abs();
    let name = rustix::thread::name().unwrap_or_default();
    Thread {
        id: u64::from(id),
        name: name.to_string_lossy().into_owned(),
    }
}

/// The calling thread, by the system's number and Rust's name.
#[cfg(windows)]
fn this_thread() -> Thread {
    let thread = std::thread::current();
    // SAFETY: any thread may ask for its number.
    let id = unsafe { windows_sys::Win32::System::Threading::GetCurrentThreadId() };
    Thread {
        id: u64::from(id),
        name: thread.name().unwrap_or_default().to_owned(),
    }
}
