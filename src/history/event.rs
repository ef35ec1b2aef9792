//! The data of a history.

use crate::kind::UsmKind;

/// The place of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Place {
    /// The kind; `None` for a provider other than Level Zero.
    pub kind: Option<UsmKind>,
    /// The address of the device's handle, which [`Device::handle`](crate::Device::handle) has; 0 for none. Of host memory
    /// the device that was given at the allocation.
    pub device: usize,
    /// The address of the context's handle; 0 for none.
    pub context: usize,
    /// The number of the pool, which is unique in the process; 0 for memory of no pool.
    pub pool: u32,
}

impl Place {
    /// Memory of no pool.
    pub(crate) fn new(kind: UsmKind, device: usize, context: usize) -> Self {
        Self {
            kind: Some(kind),
            device,
            context,
            pool: 0,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A user got a block.
    Allocate,
    /// A user freed a block.
    Free,
    /// Memory was taken from the driver.
    Reserve,
    /// Memory was returned to the driver.
    Release,
    /// A pool was trimmed.
    Trim,
    /// An allocation failed.
    Fail,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Nanoseconds since the start of the recording.
    pub time: u64,
    /// What happened.
    pub action: Action,
    /// The address; 0 for trims and failures.
    pub address: usize,
    /// Bytes: requested ones of a block, returned ones of a trim.
    pub size: usize,
    /// The place of the memory.
    pub place: Place,
    /// The thread, by its index in [`Recording::threads`](super::Recording::threads).
    pub thread: u32,
    /// The stack, if the thread was in a [`StackScope`](super::StackScope).
    pub stack: Option<u32>,
    /// Of an allocation from a pool, whether it needed no call of the driver.
    pub hit: Option<bool>,
}

/// A block that was allocated during the recording and is not freed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveBlock {
    /// When it was allocated, in nanoseconds since the start of the recording.
    pub time: u64,
    /// The requested size in bytes.
    pub size: usize,
    /// Its place.
    pub place: Place,
    /// The stack that allocated it.
    pub stack: Option<u32>,
}

/// A thread that caused an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// The system's number of the thread.
    pub id: u64,
    /// The system's name of the thread.
    pub name: String,
}

/// What was known when an allocation failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The index of the event in [`Recording::events`](super::Recording::events).
    pub event: usize,
    /// The error.
    pub message: String,
    /// Bytes that pools held in no block, in the memory that was short: the device's, or, on a discrete device, the host's.
    /// A trim of all pools could have returned them, except for parts of slabs with blocks in use.
    pub cached: usize,
    /// Bytes in blocks there, rounded up to the blocks' sizes.
    pub in_use: usize,
    /// Free bytes of the device's memory, if that is the one and the driver reports them.
    pub free: Option<u64>,
}

/// A stack and its live blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The stack that allocated the blocks.
    pub stack: Option<u32>,
    /// Their requested bytes.
    pub bytes: usize,
    /// Their number.
    pub blocks: usize,
}
