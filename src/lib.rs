//! USM memory for Intel GPUs, straight from Level Zero.
//!
//! Safe Rust over [`level_zero_sys`]: every handle is owned once and freed once, every failure is an [`Error`] that says
//! what was asked of which device and what Level Zero answered. Where no Intel GPU can be used, a Level Zero runtime on
//! the CPU serves; [`Runtime`] tells which one it is and why.
//!
//! ```
//! use zeusm::{Context, Queue, Runtime, SharedMemory};
//!
//! let runtime = Runtime::get()?;
//! let device = runtime.default_device()?;
//! let context = Context::new(device.driver())?;
//! let queue = Queue::new(&context, &device)?;
//!
//! let mut memory = SharedMemory::new(&context, &device, 4096)?;
//! queue.fill(&mut memory, 0x5a)?;
//! assert!(memory.as_slice()?.iter().all(|&byte| byte == 0x5a));
//! # Ok::<(), zeusm::Error>(())
//! ```
//!
//! From the bottom up: [`runtime`] chooses and loads, [`driver`](Driver) and [`device`](Device) describe, [`context`](Context)
//! owns, [`usm`] allocates, [`queue`](Queue) and [`event`](Event) order the work.
#![deny(missing_docs)]

pub use level_zero_sys as sys;

#[macro_use]
mod call;
mod context;
mod device;
pub mod dlpack;
mod error;
mod event;
pub mod ipc;
mod kind;
pub mod pool;
pub mod process;
mod queue;
pub mod runtime;
pub mod suai;
pub mod sycl;
pub mod usm;

pub use context::Context;
pub use device::{Device, Driver};
pub use error::{Error, Result};
pub use event::{Event, Timing};
pub use ipc::IpcHandle;
pub use queue::{Completion, Operation, Queue, RawQueue, Rows};
pub use runtime::Runtime;
pub use usm::{DeviceMemory, HostMemory, Memory, SharedMemory, UsmKind};

/// The Rust of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
