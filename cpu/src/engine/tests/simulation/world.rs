//! The environment of a simulation: operations that write a log, a fake native runtime, and an engine without threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys as sys;
use zeusm_process::{Condvar, Mutex};

use super::Random;
use crate::abi::result::ZeResult;
use crate::engine::execute::{Engine, Job, SIMULATED, Workers};
use crate::engine::{
    Enqueued, Kind, NATIVE_QUEUES, NativeEvent, Operation, Signal, begin, ended as reported,
};

/// The behaviour of an operation.
#[derive(Clone)]
pub enum Behaviour {
    Fine,
    /// Its parts may take any time.
    Lasts,
    Fails,
    Panics,
    Resets(Arc<Signal>),
}

/// Something that happened to an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    Begin(usize),
    End(usize),
    HostSignal(usize),
}

/// The log and the native runtime.
#[derive(Default)]
pub struct World {
    pub log: Mutex<Vec<Moment>>,
    native_queues: Mutex<Vec<VecDeque<Arc<Fake>>>>,
    /// Commands that have ended and whose callback has not been called.
    ended: Mutex<Vec<(Arc<Fake>, u64)>>,
    /// Whether a thread waits in the native runtime, which has room for one.
    has_waiter: Arc<AtomicBool>,
}

impl World {
    pub fn new() -> Arc<Self> {
        let world = Self::default();
        world
            .native_queues
            .lock()
            .resize_with(NATIVE_QUEUES, VecDeque::new);
        Arc::new(world)
    }

    pub fn note(&self, moment: Moment) {
        self.log.lock().push(moment);
    }

    /// Whether the native runtime is idle.
    pub fn is_idle(&self) -> bool {
        self.ended.lock().is_empty() && self.native_queues.lock().iter().all(VecDeque::is_empty)
    }

    /// Lets the native runtime take a step, if there is one.
    pub fn step(&self, random: &mut Random) {
        let mut ended = self.ended.lock();
        if !ended.is_empty() && random.percent(50) {
            // Callbacks come in any order.
            let index = random.below(ended.len());
            let (fake, key) = ended.swap_remove(index);
            drop(ended);
            return reported(key, fake.outcome);
        }
        drop(ended);
        let mut native_queues = self.native_queues.lock();
        let mut busy: Vec<_> = native_queues
            .iter_mut()
            .filter(|queue| !queue.is_empty())
            .collect();
        if busy.is_empty() {
            return;
        }
        let index = random.below(busy.len());
        let queue = &mut busy[index];
        let front = queue.front().cloned().unwrap();
        let mut state = front.state.lock();
        if !state.begun {
            state.begun = true;
            return self.note(Moment::Begin(front.id));
        }
        self.note(Moment::End(front.id));
        state.ended = true;
        front.changed.notify_all();
        queue.pop_front();
        if let Some(key) = state.watched.take() {
            self.ended.lock().push((Arc::clone(&front), key));
        }
    }
}

/// A native command.
struct Fake {
    id: usize,
    outcome: ZeResult,
    state: Mutex<FakeState>,
    changed: Condvar,
    has_waiter: Arc<AtomicBool>,
}

#[derive(Default)]
struct FakeState {
    begun: bool,
    ended: bool,
    watched: Option<u64>,
}

impl NativeEvent for Fake {
    fn watch(&self, key: u64) -> bool {
        let mut state = self.state.lock();
        if state.ended {
            drop(state);
            reported(key, self.outcome);
        } else {
            state.watched = Some(key);
        }
        true
    }

    fn flush(&self) {}

    fn wait(&self) {
        assert!(SIMULATED.get().is_none(), "a simulation has no threads");
        assert!(!self.has_waiter.swap(true, Ordering::Relaxed), "two wait");
        let mut state = self.state.lock();
        while !state.ended {
            state = self.changed.wait(state);
        }
        self.has_waiter.store(false, Ordering::Relaxed);
    }

    fn times(&self) -> Option<(u64, u64)> {
        None
    }
}

/// An operation that logs when it runs.
pub struct Logged {
    pub id: usize,
    pub kind: Kind,
    pub behaviour: Behaviour,
    pub world: Arc<World>,
}

impl Logged {
    fn fault(&self) -> ZeResult {
        match self.behaviour {
            Behaviour::Fails => Err(sys::ZE_RESULT_ERROR_UNKNOWN),
            _ => Ok(()),
        }
    }
}

impl Operation for Logged {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn parts(&self) -> usize {
        if self.kind == Kind::Long { 3 } else { 1 }
    }

    fn has_short_parts(&self) -> bool {
        !matches!(self.behaviour, Behaviour::Lasts)
    }

    fn resets(&self) -> Option<Arc<Signal>> {
        match &self.behaviour {
            Behaviour::Resets(signal) => Some(Arc::clone(signal)),
            _ => None,
        }
    }

    fn run(&self, _part: usize) -> ZeResult {
        if self.kind == Kind::Marker {
            return Ok(());
        }
        self.world.note(Moment::Begin(self.id));
        self.world.note(Moment::End(self.id));
        assert!(!matches!(self.behaviour, Behaviour::Panics), "on purpose");
        self.fault()
    }

    fn enqueue(&self, queue: usize) -> Enqueued {
        if matches!(self.behaviour, Behaviour::Panics) {
            panic!("on purpose");
        }
        let fake = Arc::new(Fake {
            id: self.id,
            outcome: self.fault(),
            state: Mutex::default(),
            changed: Condvar::new(),
            has_waiter: Arc::clone(&self.world.has_waiter),
        });
        self.world.native_queues.lock()[queue].push_back(Arc::clone(&fake));
        Enqueued {
            event: Some(fake),
            outcome: Ok(()),
        }
    }
}

/// The engine of the simulations of this thread.
pub fn engine() -> &'static Engine {
    SIMULATED.get().unwrap_or_else(|| {
        begin();
        let engine = Engine::new(Workers::simulated());
        let engine: &'static Engine = Box::leak(Box::new(engine));
        SIMULATED.set(Some(engine));
        engine
    })
}

/// The jobs of the workers.
fn jobs() -> &'static Mutex<VecDeque<Job>> {
    engine().workers.jobs.as_ref().unwrap()
}

/// Runs a job of the workers, if there is one.
pub fn run_job(random: &mut Random) {
    let mut jobs = jobs().lock();
    if !jobs.is_empty() {
        let index = random.below(jobs.len());
        let job = jobs.remove(index);
        drop(jobs);
        job.unwrap()();
    }
}

/// Whether there is nothing left to do.
pub fn is_idle(world: &World) -> bool {
    world.is_idle() && jobs().lock().is_empty()
}
