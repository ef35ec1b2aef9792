//! Memory between processes: an [`IpcHandle`] identifies a range of an allocation, is sent as bytes by any means, and is
//! opened in another process of the machine as a [`Mapping`] of the same memory.
//!
//! Level Zero's own handle has 64 bytes, which are valid only together with a file descriptor, and contains neither the size
//! nor the owner of the memory. The handle here has all of these. The process that opens it gets the descriptor over a Unix
//! socket of the exporting process, which answers processes of the same user.
//!
//! A handle is authenticated by a tag, a hash with a key of the exporting process, which verifies it: a changed or forged handle
//! cannot be opened. The size of a mapping is the driver's, and the handle is compared with it each time.
//!
//! The exporting process still owns the memory. After it has freed the memory, handles to it cannot be opened any more.
//! Existing mappings stay valid, if the driver supports that, until the last one is closed.
//!
//! ```
//! # use zeusm::{Context, IpcHandle, Runtime, SharedMemory};
//! # let device = Runtime::get()?.default_device()?;
//! # let context = Context::new(device.driver())?;
//! let mut memory = SharedMemory::new(&context, &device, 4096)?;
//! let bytes = IpcHandle::of_memory(&mut memory, 1024..2048)?.to_bytes();
//! // In the other process, which received the bytes:
//! let mapping = IpcHandle::from_bytes(&bytes)?.open(&context, &device)?;
//! assert_eq!(mapping.size(), 1024);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source: Level Zero specification, "Core programming guide", Inter-process communication.

mod descriptor;
mod driver;
mod driver_descriptor;
mod error;
mod event_handle;
mod export;
mod exports;
mod handle;
mod identity;
mod imported_file;
mod lifeline;
mod mapped_range;
mod mapping;
mod server;
mod shared_event;
mod socket;
#[cfg(test)]
mod tests;

pub use descriptor::ANSWER_TIMEOUT;
pub use error::Error;
pub use event_handle::IpcEventHandle;
pub use export::Export;
pub use handle::IpcHandle;
pub use mapped_range::is_mapped;
pub use mapping::Mapping;

use crate::device::Driver;
use crate::usm::UsmKind;
use driver::Subject;

/// Whether memory can be exported: the driver supports it, and the system allows it. A shortage does not count, as it may pass.
///
/// # Errors
/// [`crate::Error::Call`] with the driver's result.
pub fn is_supported(driver: &Driver) -> crate::Result<bool> {
    driver::is_supported(driver, Subject::Memory(UsmKind::Device))
}

/// As [`is_supported`], for events.
///
/// # Errors
/// As there.
pub fn are_events_supported(driver: &Driver) -> crate::Result<bool> {
    driver::is_supported(driver, Subject::Event)
}
