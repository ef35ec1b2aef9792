//! Operations that another runtime runs by itself: kernels, once OpenCL has been given them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::task::{Lane, Task};
use super::workers::dispatch;
use crate::opencl;

/// How many flights have yet to land, in all streams.
static UP: AtomicUsize = AtomicUsize::new(0);

/// Flights that come before another.
pub type Flights = SmallVec<[Arc<Flight>; 2]>;

/// A task between its start and its end, neither of which takes a thread of ours.
///
/// Its end is noticed by whoever comes first: OpenCL's callback, or a host thread that waits for it. The latter asks
/// OpenCL to wait, so that the thread works on the kernel instead of sleeping.
pub struct Flight {
    event: opencl::Event,
    lane: Arc<Lane>,
    state: Mutex<State>,
}

struct State {
    /// `None` once it has landed.
    task: Option<Arc<Task>>,
    /// Flights that OpenCL ends before this one.
    after: Flights,
}

impl Flight {
    /// What OpenCL was given for `task`, a task of `lane`.
    pub fn new(
        event: opencl::Event,
        lane: Arc<Lane>,
        task: Arc<Task>,
        after: Flights,
    ) -> Arc<Self> {
        lane.up.fetch_add(1, Ordering::Relaxed);
        UP.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(State {
            task: Some(task),
            after,
        });
        Arc::new(Self { event, lane, state })
    }

    /// The event for a launch that comes after it to wait for.
    pub fn event(&self) -> &opencl::Event {
        &self.event
    }

    /// Whether a flight of another stream is in the air as well.
    pub fn has_company(&self) -> bool {
        self.lane.up.load(Ordering::Relaxed) != UP.load(Ordering::Relaxed)
    }

    /// Has OpenCL tell of its end.
    pub fn watch(self: &Arc<Self>) {
        let this = Arc::clone(self);
        let told = self.event.on_complete(move || this.land());
        if told.is_err() {
            self.join();
        }
    }

    /// Whether nothing is in the air but this flight and those it comes after.
    ///
    /// A thread that asks OpenCL to wait may be given any work there is, and does not come back before it has done it;
    /// so that is for those who need it all done anyway.
    pub fn is_alone(self: &Arc<Self>) -> bool {
        let up = UP.load(Ordering::Relaxed);
        if up == 1 {
            return true;
        }
        let mut known: HashSet<*const Self> = HashSet::new();
        let mut path = vec![Arc::clone(self)];
        while let Some(flight) = path.pop() {
            let state = flight.state.lock();
            if state.task.is_some() && known.insert(Arc::as_ptr(&flight)) {
                path.extend(state.after.iter().cloned());
            }
        }
        known.len() >= up
    }

    /// Waits for its end and makes that known. The calling thread takes part in the work.
    pub fn join(self: &Arc<Self>) {
        // How it ended is told when it lands.
        let _ = self.event.wait();
        self.land();
    }

    /// Makes its end known, and before it that of all flights it comes after: whoever sees this one signalled must
    /// see those signalled too. There may be many, so this does not recurse.
    fn land(self: &Arc<Self>) {
        let mut path = vec![Arc::clone(self)];
        while let Some(flight) = path.last() {
            let before: Flights = flight
                .state
                .lock()
                .after
                .iter()
                .filter(|it| it.is_up())
                .cloned()
                .collect();
            if before.is_empty() {
                flight.finish();
                path.pop();
            } else {
                path.extend(before);
            }
        }
    }

    /// Whether it has yet to land.
    pub fn is_up(self: &Arc<Self>) -> bool {
        self.state.lock().task.is_some()
    }

    fn finish(&self) {
        let mut state = self.state.lock();
        state.after.clear();
        let Some(task) = state.task.take() else {
            return;
        };
        let ready = task.land(&self.event);
        UP.fetch_sub(1, Ordering::Relaxed);
        self.lane.up.fetch_sub(1, Ordering::Relaxed);
        drop(state);
        dispatch(ready);
    }
}
