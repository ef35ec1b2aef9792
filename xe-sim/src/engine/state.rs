//! What an engine's thread shares with the kernel interface.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::faults::Loss;
use crate::machine::Model;
use crate::memory::AddressSpace;

/// The class of an engine, which determines its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineClass {
    Render,
    Copy,
    Compute,
}

/// The engine of an exec queue.
pub(super) struct State {
    pub(super) space: Arc<AddressSpace>,
    pub(super) class: EngineClass,
    pub(super) model: &'static Model,
    pub(super) stopping: AtomicBool,
    pub(super) banned: AtomicBool,
    /// How the device was lost, if it was; shared by all queues of the device.
    pub(super) lost: Arc<OnceLock<Loss>>,
}

impl State {
    /// Whether execution must stop: the queue is being destroyed or is banned, or the device is lost.
    pub(super) fn stops(&self) -> bool {
        self.stopping.load(Ordering::Acquire) || self.is_banned()
    }

    pub(super) fn is_banned(&self) -> bool {
        self.banned.load(Ordering::Acquire) || self.lost.get().is_some()
    }
}
