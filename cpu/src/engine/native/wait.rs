//! Waiting inside the native runtime, which one thread does at a time.
//!
//! The native runtime for the CPU has one worker less than there are processors, and expects a waiting host thread to
//! help. It has room for one such thread: a second one would block until the first leaves. So one thread at a time has
//! the role of the waiter. A host thread takes the role only when the queue that it waits for is the only busy one,
//! since it could end up executing the commands of others. Otherwise it sleeps, and a helper thread takes the role
//! instead. So it does if its stack is small, since kernels are executed on the stack of the thread that has the role.
//!
//! The role only makes kernels faster: they are executed and completed without it, too.

use std::sync::Arc;

use crate::engine::order::primitives::{
    AtomicUsize, Condvar, Mutex, Ordering, THREAD_STACK, thread,
};
use crate::engine::order::{NativeEvent, Request};
use crate::system::signals;

/// Finds a command that the native runtime executes.
type Find = Arc<dyn Fn() -> Option<Arc<dyn NativeEvent>> + Send + Sync>;

/// The role of the thread that waits inside the native runtime.
#[derive(Default)]
pub struct Waiter {
    /// Held for a few instructions; no other lock is taken under it.
    state: Mutex<State>,
    wanted: Condvar,
    /// How many native queues have commands in flight.
    busy: AtomicUsize,
}

#[derive(Default)]
struct State {
    held: bool,
    /// How many host threads sleep until a native command ends.
    requests: usize,
    /// How many have ever asked.
    asked: u64,
    has_helper: bool,
    /// Finds what the helper waits for.
    find: Option<Find>,
}

/// Gives up the role when dropped.
struct Hold<'a>(&'a Waiter);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.held = false;
        if state.requests > 0 {
            self.0.wanted.notify_all();
        }
    }
}

impl Waiter {
    /// Has the helper wait for what `find` finds.
    pub fn look_at(&self, find: impl Fn() -> Option<Arc<dyn NativeEvent>> + Send + Sync + 'static) {
        self.state.lock().find = Some(Arc::new(find));
    }

    /// A queue has become busy.
    pub fn queue_is_busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    /// A queue has become idle.
    pub fn queue_is_idle(&self) {
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }

    /// Calls `wait`, which waits inside the native runtime, if this thread can have the role and no other queue is
    /// busy.
    pub fn try_hold(&self, wait: impl FnOnce()) -> bool {
        if self.busy.load(Ordering::Relaxed) > 1 {
            return false;
        }
        {
            let mut state = self.state.lock();
            if state.held {
                return false;
            }
            state.held = true;
        }
        let _hold = Hold(self);
        wait();
        true
    }

    /// Asks the helper to take the role, as long as the request lives.
    pub fn request(&'static self) -> Request {
        let mut state = self.state.lock();
        state.requests += 1;
        state.asked += 1;
        if !state.held {
            self.wanted.notify_all();
        }
        if !state.has_helper {
            let helper = thread::Builder::new()
                .name("zeusm-cpu-helper".to_owned())
                .stack_size(THREAD_STACK);
            state.has_helper = helper
                .spawn(|| {
                    signals::leave_to_application();
                    self.serve();
                })
                .is_ok();
        }
        Box::new(Asked(self))
    }

    /// The helper's life.
    fn serve(&self) {
        let mut served = 0;
        loop {
            let mut state = self.state.lock();
            while state.held || state.requests == 0 || state.asked == served {
                state = self.wanted.wait(state);
            }
            let (asked, find) = (state.asked, state.find.clone());
            state.held = true;
            drop(state);
            let _hold = Hold(self);
            match find.and_then(|find| find()) {
                Some(last) => last.wait(),
                // All that was asked for has ended.
                None => served = asked,
            }
        }
    }
}

/// A host thread's request for help, until dropped.
struct Asked<'a>(&'a Waiter);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.state.lock().requests -= 1;
    }
}
