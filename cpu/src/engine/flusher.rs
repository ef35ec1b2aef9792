//! The flusher: a thread that issues queued native commands for which no thread waits.
//!
//! It looks at the queues in intervals while commands are queued, and sleeps when none has been for a while. So a command is
//! usually queued without a wake-up of this thread. The intervals grow as long as waiting threads take the commands, as each look
//! may take the processor from one of these.

use std::time::Duration;

use super::nap::Nap;
use super::primitives::{AtomicUsize, Mutex, Ordering, THREAD_STACK, fence, thread};
use super::workers::{current, engine, in_background};

/// The first interval, and the one after it has issued commands.
const SHORTEST: Duration = Duration::from_micros(100);
/// The longest interval.
const LONGEST: Duration = Duration::from_micros(800);
/// How long it looks without queued commands before it sleeps.
const IDLE: Duration = Duration::from_millis(15);
/// How many queries in a row without success are polling.
const POLLS: usize = 4;

/// The flusher of an engine.
#[derive(Default)]
pub struct Flusher {
    /// How many native queues have queued commands.
    queues: AtomicUsize,
    nap: Nap,
    /// How many times the host has asked in vain whether something has happened since a command was queued last.
    polls: AtomicUsize,
    /// How many threads sleep until commands are complete. Meanwhile none is queued, as no thread might execute it.
    sleeping: AtomicUsize,
    has_thread: Mutex<bool>,
}

impl Flusher {
    /// A queue has queued commands now.
    pub fn queue_has_queued(&self) {
        self.queues.fetch_add(1, Ordering::Relaxed);
    }

    /// A queue has no queued commands any more.
    pub fn queue_has_none(&self) {
        self.queues.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether any queue has queued commands.
    pub fn has_queued(&self) -> bool {
        self.queues.load(Ordering::Relaxed) > 0
    }

    /// Whether threads sleep until commands are complete, so that commands should not be queued.
    pub fn has_sleeping(&self) -> bool {
        self.sleeping.load(Ordering::Relaxed) > 0
    }

    /// Has the thread look at the queues, after a command was queued; `false` where the system refuses to create the thread, or
    /// when a thread sleeps: of that, which calls [`Sleeping::begin`], and this one, one sees what the other has stored.
    pub fn watch(&'static self) -> bool {
        self.polls.store(0, Ordering::Relaxed);
        (self.nap.is_awake() || self.wake()) && !self.has_sleeping()
    }

    fn wake(&'static self) -> bool {
        #[cfg(test)]
        if engine().is_simulated() {
            return true;
        }
        let mut has_thread = self.has_thread.lock();
        if !*has_thread {
            let flusher = thread::Builder::new()
                .name("zeusm-cpu-flusher".to_owned())
                .stack_size(THREAD_STACK);
            *has_thread = flusher.spawn(|| self.serve()).is_ok();
        }
        if *has_thread {
            self.nap.wake();
        }
        *has_thread
    }

    /// The loop of the thread.
    fn serve(&self) {
        loop {
            self.nap.sleep(|| self.has_queued());
            let (mut idle, mut interval) = (Duration::ZERO, SHORTEST);
            while idle < IDLE {
                thread::sleep(interval);
                idle += interval;
                interval = LONGEST.min(interval * 2);
                if self.has_queued() {
                    idle = Duration::ZERO;
                    let queues = engine().native_queues();
                    let flush_old = || queues.iter().filter(|queue| queue.flush_old()).count();
                    if in_background(flush_old) > 0 {
                        interval = SHORTEST;
                    }
                }
            }
        }
    }
}

/// A thread that sleeps until commands are complete.
pub struct Sleeping(&'static Flusher);

impl Sleeping {
    /// Before the thread looks for the last time. Issues all queued native commands.
    pub fn begin() -> Self {
        let flusher = engine().flusher;
        flusher.sleeping.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        flush_all();
        Self(flusher)
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        self.0.sleeping.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Issues all queued native commands if threads keep asking whether something has happened: they may not wait for it. Libraries
/// also ask once for each event that they hold.
pub fn polled() {
    if let Some(engine) = current()
        && engine.flusher.has_queued()
        && engine.flusher.polls.fetch_add(1, Ordering::Relaxed) >= POLLS
    {
        flush_all();
    }
}

/// Issues all queued native commands, for a thread that waits for something that may depend on them.
pub fn flush_all() {
    if let Some(engine) = current()
        && engine.flusher.has_queued()
    {
        engine
            .native_queues()
            .iter()
            .for_each(|queue| queue.flush());
    }
}
