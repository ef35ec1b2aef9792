//! Replaces the engine's commands.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};

use super::native::NativeQueue;
use super::native_wait::Request;
use crate::system::clock::Deadline;

/// Replaces the engine's token of a released command. Like that type it owns heap memory.
pub struct Token(pub Box<usize>);

impl Token {
    pub fn chain(&mut self, _queue: &'static NativeQueue) -> bool {
        false
    }
}

/// A command with one work item, which exactly one thread executes.
pub struct Work {
    claimed: AtomicBool,
    operation: Box<dyn Fn() + Send + Sync>,
}

impl Work {
    pub fn new(operation: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            claimed: AtomicBool::new(false),
            operation: Box::new(operation),
        })
    }

    pub fn run(&self) -> bool {
        let claims = !self.claimed.swap(true, Ordering::Relaxed);
        if claims {
            (self.operation)();
        }
        claims
    }
}

#[derive(Clone)]
pub struct Native {
    pub queue: &'static NativeQueue,
}

#[derive(Clone)]
pub enum Executor {
    Native(Native),
    Workers(Arc<Work>),
}

impl Executor {
    pub fn help(&self, _deadline: Deadline) -> bool {
        match self {
            Self::Native(_) => false,
            Self::Workers(work) => work.run(),
        }
    }

    pub fn request_help(&self) -> Option<Request<'static>> {
        None
    }

    pub fn identity(&self) -> (usize, u64) {
        match self {
            Self::Native(_) => (0, 0),
            Self::Workers(work) => (Arc::as_ptr(work).addr(), 0),
        }
    }
}
