//! The flusher: a thread that issues queued native commands for which no thread waits.
//!
//! It looks at the queues in short intervals while commands are queued, and sleeps when none has been for a while. So a command
//! is usually queued without a wake-up of this thread.

use super::primitives::{
    AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, THREAD_STACK, pause, thread,
};
use super::workers::engine;

/// How many intervals without queued commands it looks before it sleeps: about 15 ms.
const IDLE: usize = 100;

/// The flusher of an engine.
#[derive(Default)]
pub struct Flusher {
    /// How many native queues have queued commands.
    queues: AtomicUsize,
    /// Whether the thread looks at the queues by itself.
    is_awake: AtomicBool,
    /// Held for a few instructions; no other lock is taken under it, but the thread is started.
    state: Mutex<State>,
    wanted: Condvar,
}

#[derive(Default)]
struct State {
    has_thread: bool,
    is_wanted: bool,
}

impl Flusher {
    /// A queue has queued commands now.
    pub fn queue_has_queued(&self) {
        self.queues.fetch_add(1, Ordering::SeqCst);
    }

    /// A queue has no queued commands any more.
    pub fn queue_has_none(&self) {
        self.queues.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether any queue has queued commands.
    pub fn has_queued(&self) -> bool {
        self.queues.load(Ordering::SeqCst) > 0
    }

    /// Has the thread look at the queues from now on; `false` where the system refuses to create it. To be called when a
    /// command has been queued: of this call, which loads `is_awake`, and the thread, which loads `queues` after it has
    /// stored `is_awake`, one sees the other.
    pub fn watch(&'static self) -> bool {
        if self.is_awake.load(Ordering::SeqCst) {
            return true;
        }
        #[cfg(test)]
        if engine().is_simulated() {
            return true;
        }
        let mut state = self.state.lock();
        if !state.has_thread {
            let flusher = thread::Builder::new()
                .name("zeusm-cpu-flusher".to_owned())
                .stack_size(THREAD_STACK);
            state.has_thread = flusher.spawn(|| self.serve()).is_ok();
        }
        state.is_wanted = true;
        self.wanted.notify_one();
        state.has_thread
    }

    /// The loop of the thread.
    fn serve(&self) {
        loop {
            self.sleep();
            let mut idle = 0;
            while idle < IDLE {
                pause();
                idle += 1;
                if self.has_queued() {
                    idle = 0;
                    engine()
                        .native_queues()
                        .iter()
                        .for_each(|queue| queue.flush_old());
                }
            }
        }
    }

    /// Sleeps until it is wanted.
    fn sleep(&self) {
        let mut state = self.state.lock();
        self.is_awake.store(false, Ordering::SeqCst);
        while !state.is_wanted && !self.has_queued() {
            state = self.wanted.wait(state);
        }
        state.is_wanted = false;
        self.is_awake.store(true, Ordering::SeqCst);
    }
}

/// Issues all queued native commands, for a thread that waits for something that may depend on them, or has asked whether it
/// has happened.
pub fn flush_all() {
    if let Some(engine) = super::workers::current()
        && engine.flusher.has_queued()
    {
        engine
            .native_queues()
            .iter()
            .for_each(|queue| queue.flush());
    }
}
