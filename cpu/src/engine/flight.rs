//! Operations that another runtime runs by itself: kernels, once OpenCL has been given them.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::path::Path;
use super::seat;
use super::task::{Lane, Task};
use super::workers::dispatch;
use crate::opencl;

/// How many flights have yet to land, in all streams.
static UP: AtomicUsize = AtomicUsize::new(0);

/// A task between its start and its end, neither of which takes a thread of ours.
///
/// Its end is noticed by whoever comes first: OpenCL's callback, or a host thread that waits for it. The latter asks
/// OpenCL to wait, so that the thread works on the kernel instead of sleeping.
pub struct Flight {
    event: opencl::Event,
    lane: Arc<Lane>,
    /// Whether it, or what it waits for, is worth a change of processor.
    large: bool,
    /// Whether the times of the launch are wanted.
    timed: bool,
    /// Whether a host thread is waiting for it, and lands it.
    joined: AtomicBool,
    /// Whether its end has been made known.
    landed: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// `None` once it has landed.
    task: Option<Arc<Task>>,
    /// Flights that OpenCL ends before this one, and what is to be told between them and this.
    after: Path,
}

impl Flight {
    /// What OpenCL was given for `task`, a task of `lane`.
    pub fn new(event: opencl::Event, lane: Arc<Lane>, task: Arc<Task>, after: Path) -> Arc<Self> {
        let large = task.is_large() || after.flights.iter().any(|flight| flight.large);
        let timed = task.is_timed();
        lane.up.fetch_add(1, Ordering::Relaxed);
        UP.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(State {
            task: Some(task),
            after,
        });
        Arc::new(Self {
            event,
            lane,
            large,
            timed,
            joined: AtomicBool::new(false),
            landed: AtomicBool::new(false),
            state,
        })
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
        seat::is_host();
        if self.event.tell(Arc::clone(self)).is_err() {
            self.join();
        }
    }

    /// Waits for its end and makes that known. The calling thread takes part in the work.
    pub fn join(self: &Arc<Self>) {
        self.joined.store(true, Ordering::Release);
        seat::is_host();
        // How it ended is told when it lands.
        let _ = if self.large {
            seat::beside_the_workers(|| self.event.wait())
        } else {
            self.event.wait()
        };
        self.land();
    }

    /// Makes its end known, and before it that of all its path: whoever sees this one signalled must see that
    /// signalled too. There may be much of it, so this does not recurse.
    fn land(self: &Arc<Self>) {
        let mut way = vec![Arc::clone(self)];
        while let Some(flight) = way.last() {
            let path = flight.state.lock().after.clone();
            let before = way.len();
            way.extend(path.flights.into_iter().filter(Self::is_up));
            if way.len() == before {
                path.markers.iter().for_each(Task::settle);
                way.pop().inspect(|flight| flight.finish());
            }
        }
    }

    /// Whether it has yet to land.
    pub fn is_up(self: &Arc<Self>) -> bool {
        self.state.lock().task.is_some()
    }

    /// Whether its end has been made known. Takes no lock, unlike [`is_up`](Self::is_up).
    pub fn has_landed(&self) -> bool {
        self.landed.load(Ordering::Acquire)
    }

    fn finish(&self) {
        if self.has_landed() {
            return;
        }
        // Asked without a lock of ours, as OpenCL may hold one of its own on the event while it tells another thread.
        let outcome = self.event.outcome();
        let times = if self.timed { self.event.times() } else { None };
        let mut state = self.state.lock();
        let path = mem::take(&mut state.after);
        let Some(task) = state.task.take() else {
            return;
        };
        let ready = task.land(outcome, times);
        self.landed.store(true, Ordering::Release);
        UP.fetch_sub(1, Ordering::Relaxed);
        self.lane.up.fetch_sub(1, Ordering::Relaxed);
        drop(state);
        drop(path);
        dispatch(ready);
    }
}

impl opencl::Observer for Flight {
    /// A thread that waits for the flight lands it, since OpenCL lets that go on after this call only. With more in the
    /// air, that thread may be busy with it.
    fn completed(self: Arc<Self>) {
        seat::note_worker();
        if !self.joined.load(Ordering::Acquire) || UP.load(Ordering::Relaxed) > 1 {
            self.land();
        }
    }
}
