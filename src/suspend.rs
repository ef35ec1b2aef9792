//! Pools that give their physical memory back, and keep their addresses.

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

use crate::error::{Error, Result};
use crate::kind::UsmKind;
use crate::pool::Pool;
use crate::queue::RawQueue;
use crate::usm::{Allocation, LevelZeroProvider, Saved, pointer};

impl Pool<LevelZeroProvider> {
    /// Gives the physical memory back and keeps the addresses, so that pointers to the blocks in use are valid again after
    /// [`resume`](Self::resume). With `keep`, the bytes are saved in host memory, else they are lost. Returns the bytes that were
    /// given back.
    ///
    /// `wait` is called with the addresses before they lose their memory, to wait for the work on them. From then on the pool refuses
    /// allocations, and [`is_suspended`](crate::usm::is_suspended) is true for the addresses. An error leaves the pool as it was; if
    /// memory cannot be put back, it is suspended, with all bytes.
    ///
    /// ```
    /// # use zeusm::pool::{Options, Pool};
    /// # use zeusm::usm::{Allocation, LevelZeroProvider};
    /// # use zeusm::{Context, Error, Runtime};
    /// # let device = Runtime::get()?.default_device()?;
    /// # let context = Context::new(device.driver())?;
    /// let provider = LevelZeroProvider::suspendable(&context, &device);
    /// let pool = Pool::new(provider, Options::default());
    /// let memory = Allocation::in_pool(&pool, 1 << 20, 0)?;
    /// // SAFETY: there is no work on the memory.
    /// assert!(unsafe { pool.suspend(true, |_| Ok::<(), Error>(())) }? >= 1 << 20);
    /// pool.resume()?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotSuspendable`] without [`LevelZeroProvider::suspendable`], [`Error::Suspended`] while another thread suspends or
    /// resumes it, those of `wait`, and those of Level Zero.
    ///
    /// # Safety
    /// When `wait` has returned, no work on the memory is in flight, and none is submitted before the pool is resumed.
    pub unsafe fn suspend<E: From<Error>>(
        &self,
        keep: bool,
        wait: impl FnOnce(&[Range<usize>]) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.free_all_blocks();
        let suspension = self.provider().suspension()?;
        wait(&suspension.ranges())?;
        let save = |range: &Range<usize>| {
            let (context, device) = (self.provider().context(), self.provider().device());
            let size = range.len();
            let saved = Allocation::direct(context, device, UsmKind::Host, size, 0)?;
            self.copy(saved.as_ptr(), pointer(range), size)?;
            Ok(Box::new(saved) as Saved)
        };
        // SAFETY: as for this function.
        Ok(unsafe { suspension.suspend(keep.then_some(save)) }?)
    }

    /// Puts physical memory at the addresses again, and the bytes there that were kept. Without an effect on a pool that is not
    /// suspended.
    ///
    /// # Errors
    /// As [`suspend`](Self::suspend), also when there is not enough memory. The pool is suspended then, and nothing is lost.
    pub fn resume(&self) -> Result<()> {
        self.provider().suspension()?.resume(|range, saved| {
            let saved = saved.downcast_ref::<Allocation>();
            let from = saved.map_or(ptr::null_mut(), Allocation::as_ptr);
            self.copy(pointer(range), from, range.len())
        })
    }

    /// Copies between a range of the pool's memory and host memory of the same size, both of which only this thread uses.
    fn copy(&self, to: *mut c_void, from: *mut c_void, size: usize) -> Result<()> {
        let queue = RawQueue::new(self.provider().context(), self.provider().device())?;
        // SAFETY: both are of the size, and alive until the copy is complete, which this waits for.
        unsafe { queue.copy_and_wait(to, from, size) }
    }
}
