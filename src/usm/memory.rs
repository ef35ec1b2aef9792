//! USM owners typed by kind: host and shared memory can be borrowed as slices, device memory cannot.

use std::fmt;
use std::marker::PhantomData;
use std::slice;

use super::{Allocation, Host, HostAccessible, Kind, Shared, UsmKind};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};

/// USM on the host, which every device of the context can access.
pub type HostMemory = Memory<Host>;
/// USM on one device, which the host cannot access.
pub type DeviceMemory = Memory<super::Device>;
/// USM that migrates between the host and a device.
pub type SharedMemory = Memory<Shared>;

/// The exclusive owner of an allocation of kind `K`.
///
/// Operations of the checked queue borrow or own a `Memory`, so none of them is in flight while a slice of it lives. Other
/// processes cannot write under a slice either: an allocation is exported after [`into_allocation`](Self::into_allocation),
/// or through an exclusive borrow, after which it returns no slices.
///
/// ```
/// # use zeusm::{Context, HostMemory, Runtime};
/// # let device = Runtime::get()?.default_device()?;
/// # let context = Context::new(device.driver())?;
/// let mut memory = HostMemory::with_alignment(&context, &device, 100, 4096)?;
/// memory.as_mut_slice()?.fill(7);
/// assert_eq!(memory.as_slice()?, [7; 100]);
/// assert!(memory.as_ptr().addr().is_multiple_of(4096));
/// # Ok::<(), zeusm::Error>(())
/// ```
///
/// The host cannot access device memory:
///
/// ```compile_fail
/// # use zeusm::DeviceMemory;
/// fn look(memory: &DeviceMemory) -> zeusm::Result<u8> {
///     Ok(memory.as_slice()?[0])
/// }
/// ```
pub struct Memory<K: Kind> {
    allocation: Allocation,
    kind: PhantomData<K>,
}

impl<K: Kind> Memory<K> {
    /// Allocates `size` bytes in `context` for `device`, at an alignment of the runtime's choice.
    ///
    /// # Errors
    /// [`Error::Allocation`](crate::Error::Allocation) with Level Zero's result.
    pub fn new(context: &Context, device: &Device, size: usize) -> Result<Self> {
        Self::with_alignment(context, device, size, 0)
    }

    /// Allocates `size` bytes at an `alignment` in bytes, 0 or a power of two.
    ///
    /// # Errors
    /// [`Error::Alignment`](crate::Error::Alignment) for any other alignment,
    /// [`Error::Allocation`](crate::Error::Allocation) with Level Zero's result.
    pub fn with_alignment(
        context: &Context,
        device: &Device,
        size: usize,
        alignment: usize,
    ) -> Result<Self> {
        Allocation::new(context, device, K::KIND, size, alignment).map(|allocation| Self {
            allocation,
            kind: PhantomData,
        })
    }

    /// The allocation itself, which has no slices, and can be shared and exported.
    #[must_use]
    pub fn into_allocation(self) -> Allocation {
        self.allocation
    }

    /// The context it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.allocation.context()
    }

    /// The device of the allocation. For host memory, which all devices of the context can access, the one given at the
    /// allocation.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.allocation.device()
    }

    /// The allocation, to export it: no slice of it exists during the borrow, and none is made after the export.
    #[cfg(target_os = "linux")] // Used by `ipc` only.
    pub(crate) fn exclusive_allocation(&mut self) -> &Allocation {
        &self.allocation
    }

    /// The address of the memory; null when it has no bytes.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.allocation.as_ptr().cast()
    }

    /// The size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.allocation.size()
    }
}

impl<K: HostAccessible> Memory<K> {
    /// The bytes.
    ///
    /// # Errors
    /// [`Error::HostAccess`] once the memory was exported, as another process may write to it at any time. For shared memory
    /// those of [`Device::check_shared_memory`].
    pub fn as_slice(&self) -> Result<&[u8]> {
        self.check_accessible()?;
        // SAFETY: the host can access this kind; the allocation has `size` bytes, which are initialised by the system;
        // operations that write them borrow or own this `Memory`, so none is in flight during this borrow, and no other
        // process has mapped the memory. The driver can still migrate shared memory to the host. Where a device and the host must not access one allocation concurrently, no other
        // block shares this one's allocation (`Provider::shares_allocations`).
        Ok(unsafe { slice::from_raw_parts(self.allocation.first_byte().as_ptr(), self.size()) })
    }

    /// The bytes, for writing.
    ///
    /// # Errors
    /// As [`as_slice`](Self::as_slice).
    pub fn as_mut_slice(&mut self) -> Result<&mut [u8]> {
        self.check_accessible()?;
        // SAFETY: as above, and the borrow is exclusive.
        Ok(
            unsafe {
                slice::from_raw_parts_mut(self.allocation.first_byte().as_ptr(), self.size())
            },
        )
    }

    fn check_accessible(&self) -> Result<()> {
        if K::KIND == UsmKind::Shared {
            self.device().check_shared_memory()?;
        }
        if self.allocation.is_exported() {
            return Err(Error::HostAccess {
                kind: K::KIND,
                size: self.size(),
                device: self.device().to_string(),
                reason: "it was exported, and another process may write to it",
            });
        }
        Ok(())
    }
}

impl<K: Kind> fmt::Debug for Memory<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "<{} USM of {} bytes at {:?}>",
            K::KIND,
            self.size(),
            self.as_ptr()
        )
    }
}
