//! Memory between processes: an [`IpcHandle`] names a range of an allocation, travels as bytes by any means, and opens
//! in another process of the machine as a [`Mapping`] of the same memory.
//!
//! Level Zero's own handle is 64 bytes that mean something only beside a file descriptor, and says neither size nor
//! whose memory it is. The handle here says all that, and moves the descriptor itself: by `pidfd_getfd`, and where the
//! rules for `ptrace` forbid that, over a Unix socket of the exporting process, to processes of the same user.
//!
//! The bytes of a handle are believed only after their seal, a hash with a key of the exporting process: whoever opens a
//! handle compares it with that key if it may look into that process, else has the process compare. So what opens is
//! what was exported, whoever had the bytes in between; and the driver's word on the size of a mapping is compared with
//! the handle each time.
//!
//! The memory stays its owner's. Once that frees it, handles to it open no more; what was opened before stays mapped, as
//! far as the driver keeps it, until the last mapping is closed.
//!
//! ```
//! # use zeusm::{Context, IpcHandle, Runtime, SharedMemory};
//! # let device = Runtime::get()?.default_device()?;
//! # let context = Context::new(device.driver())?;
//! let mut memory = SharedMemory::new(&context, &device, 4096)?;
//! let bytes = IpcHandle::of_memory(&mut memory, 1024..2048)?.to_bytes();
//! // Elsewhere, after the bytes have travelled:
//! let mapping = IpcHandle::from_bytes(&bytes)?.open(&context, &device)?;
//! assert_eq!(mapping.size(), 1024);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source: Level Zero specification, "Core programming guide", Inter-process communication.

mod driver;
mod error;
mod export;
mod fetch;
mod handle;
mod identity;
mod ledger;
mod lent;
mod mapping;
mod seal;
mod server;
#[cfg(test)]
mod tests;

pub use driver::is_supported;
pub use error::Error;
pub use handle::IpcHandle;
pub use mapping::Mapping;
