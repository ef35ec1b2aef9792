//! The engine of this process: its workers and the native queues.

#[cfg(test)]
use std::cell::Cell;

use zeusm_process::Local;

use super::work::Work;
use super::workers::Workers;
use crate::engine::native::NativeQueues;
use crate::engine::order::retired::is_in_callback;
use crate::engine::order::{
    Execute, InOrder, Kind, QueueNumber, Token, dispatch, register, run_all,
};

/// The engine's state, which a fork's child replaces: it has neither the threads of the parent nor the holders of its locks.
/// Commands in flight in the parent are never completed in the child.
pub struct Engine {
    /// The threads for long commands, and for what other threads must not do.
    pub workers: Workers,
    queues: NativeQueues,
}

/// The engine of this process, created on first use.
static ENGINE: Local<Engine> = Local::new();

#[cfg(test)]
thread_local! {
    /// The engine of a simulation that this thread runs.
    pub static SIMULATED: Cell<Option<&'static Engine>> = const { Cell::new(None) };
}

/// Has the engine execute the commands of this process.
pub fn begin() {
    register(|| {
        #[cfg(test)]
        if let Some(simulated) = SIMULATED.get() {
            return simulated;
        }
        ENGINE.get_or_init(|| Engine::new(Workers::default()))
    });
}

impl Engine {
    /// An engine with these workers.
    pub fn new(workers: Workers) -> Self {
        Self {
            workers,
            queues: NativeQueues::new(),
        }
    }
}

impl Execute for Engine {
    fn execute(&'static self, token: Box<Token>) {
        match (token.kind, token.queue) {
            (Kind::Marker, None) => {
                let now = token.now_if_timed();
                dispatch(token.complete(now, now));
            }
            (Kind::Marker, Some(queue)) => self.queues.get(queue).mark(token),
            (Kind::Short, _) => run_here(token),
            (Kind::Long, _) => Work::begin(token, &self.workers),
            // A callback of the native runtime must not call that runtime.
            (Kind::Native | Kind::NativeDeferred, _) if is_in_callback() => {
                self.workers.advance(token);
            }
            (Kind::Native | Kind::NativeDeferred, queue) => {
                let queue = queue.unwrap_or_else(|| token.home());
                self.queues.get(queue).enqueue(token);
            }
        }
    }

    fn queue(&'static self, number: QueueNumber) -> &'static dyn InOrder {
        self.queues.get(number)
    }

    fn assign_queue(&'static self) -> QueueNumber {
        self.queues.next()
    }

    fn may_have_callbacks(&'static self) -> bool {
        self.workers.has_some()
    }
}

/// Executes a short command on the calling thread.
fn run_here(token: Box<Token>) {
    let started = token.now_if_timed();
    token.note(run_all(&*token.operation));
    let ended = token.now_if_timed();
    dispatch(token.complete(started, ended));
}
