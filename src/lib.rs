//! USM memory for Intel GPUs, allocated through Level Zero.
//!
//! Safe Rust over [`level_zero_sys`]: every handle has one owner, and every failure is an [`Error`] with the operation, the
//! device and Level Zero's result. If no Intel GPU can be used, a Level Zero runtime on the CPU is used instead; [`Runtime`]
//! has the selected one and the reason.
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
//! The layers from the bottom up: [`runtime`] chooses and loads the library, [`Driver`] and [`Device`] describe the hardware,
//! a [`Context`] owns allocations, [`usm`] allocates through a [`pool`], [`Queue`] and [`Event`] order the work, and [`ipc`]
//! and [`sycl`] share memory with other processes and with SYCL.
//!
//! On Windows [`ipc`], which sends file descriptors, is an error that says so.
#![deny(missing_docs, clippy::disallowed_types)]

pub use level_zero_sys as sys;

pub mod arrow;
#[macro_use]
mod call;
mod confinement;
mod context;
pub mod cuda;
mod device;
pub mod dlpack;
mod error;
mod event;
pub mod exit;
pub mod history;
#[cfg(target_os = "linux")]
pub mod ipc;
#[cfg(windows)]
#[path = "ipc/windows.rs"]
pub mod ipc;
mod kind;
mod ongoing;
pub mod pool;
mod queue;
pub mod runtime;
mod shared_library;
pub mod suai;
mod suspend;
pub mod sycl;
pub mod usm;

pub use context::Context;
pub use device::{Device, Driver, MemoryState};
pub use error::{Error, Result};
pub use event::{Event, Timing};
pub use ipc::{IpcEventHandle, IpcHandle};
pub use queue::{Completion, Operation, Queue, RawQueue, Rows, overlap, with_drops, without_drops};
pub use runtime::Runtime;
pub use usm::{DeviceMemory, HostMemory, Memory, SharedMemory, UsmKind};

/// Includes the page of the documentation, so that its examples are tested.
#[cfg(doctest)]
#[doc = include_str!("../docs/reference/rust.md")]
struct Page;
