//! USM as an owner typed by kind: host and shared memory are slices, device memory does not compile to one.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::Arc;

use super::{Allocation, Host, HostAccessible, Kind, Shared};
use crate::Result;
use crate::context::Context;
use crate::device::Device;

/// USM that the host owns and every device of the context may reach.
pub type HostMemory = Memory<Host>;
/// USM on one device, out of the host's sight.
pub type DeviceMemory = Memory<super::Device>;
/// USM that host and device both touch.
pub type SharedMemory = Memory<Shared>;

/// The one owner of an allocation of kind `K`.
///
/// ```
/// # use zeusm::{Context, HostMemory, Runtime};
/// # let device = Runtime::get()?.default_device()?;
/// # let context = Context::new(device.driver())?;
/// let mut memory = HostMemory::with_alignment(&context, &device, 100, 4096)?;
/// memory.copy_from_slice(&[7; 100]);
/// assert_eq!(memory.iter().map(|&byte| u32::from(byte)).sum::<u32>(), 700);
/// assert!(memory.as_ptr().addr().is_multiple_of(4096));
/// # Ok::<(), zeusm::Error>(())
/// ```
///
/// Device memory is no slice:
///
/// ```compile_fail
/// # use zeusm::DeviceMemory;
/// fn look(memory: &DeviceMemory) -> u8 {
///     memory[0]
/// }
/// ```
pub struct Memory<K: Kind> {
    allocation: Arc<Allocation>,
    kind: PhantomData<K>,
}

impl<K: Kind> Memory<K> {
    /// Allocates `size` bytes in `context` for `device`, aligned as the runtime likes.
    ///
    /// # Errors
    /// [`Error::Allocation`](crate::Error::Allocation) with Level Zero's answer.
    pub fn new(context: &Context, device: &Device, size: usize) -> Result<Self> {
        Self::with_alignment(context, device, size, 0)
    }

    /// Allocates `size` bytes at an `alignment` in bytes, 0 or a power of two.
    ///
    /// # Errors
    /// [`Error::Alignment`](crate::Error::Alignment) for any other alignment,
    /// [`Error::Allocation`](crate::Error::Allocation) with Level Zero's answer.
    pub fn with_alignment(
        context: &Context,
        device: &Device,
        size: usize,
        alignment: usize,
    ) -> Result<Self> {
        Allocation::new(context, device, K::KIND, size, alignment).map(|allocation| Self {
            allocation: Arc::new(allocation),
            kind: PhantomData,
        })
    }

    /// The allocation itself; what a running operation keeps a share of.
    #[must_use]
    pub fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }

    /// Where the memory begins; null when it has no bytes.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.allocation.as_ptr().cast()
    }

    /// How many bytes there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.allocation.size()
    }
}

impl<K: HostAccessible> Deref for Memory<K> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the host may read this kind; Level Zero gave `size` bytes, all of which hold some value; operations
        // that write them borrow or own this `Memory`, so none runs while it is borrowed here.
        unsafe { slice::from_raw_parts(self.allocation.first_byte().as_ptr(), self.size()) }
    }
}

impl<K: HostAccessible> DerefMut for Memory<K> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.allocation.first_byte().as_ptr(), self.size()) }
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
