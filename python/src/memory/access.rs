//! Access to the address of memory. The host and other packages get the address after the operations in flight on the bytes
//! are complete; zeusm's own queues get it at once, and order the next operation after those in flight.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;

use super::base::PyMemory;
use crate::dpctl::SyclQueue;
use crate::errors::OrRaise;
use crate::event::WaitList;
use crate::in_flight::{self, InFlight};
use crate::interpreter::{FREE_THREADED, detach};
use crate::resolve::QueueBinding;
use crate::transfer::Side;
use zeusm::usm::{UsmKind, is_suspended};
use zeusm::{Error, Event};

impl PyMemory {
    /// For a host access: waits for the operations in flight on these bytes, zeusm's and those of the memory's SYCL queue.
    ///
    /// # Errors
    /// The exception of a signal handler during the wait; [`Error::Call`] for shared memory of a lost device.
    pub(crate) fn for_host(&self, py: Python<'_>, touched: Range<usize>) -> PyResult<usize> {
        self.after_sycl(py)?;
        self.after_in_flight(py, touched, true)?;
        self.check_accessible()?;
        self.check_has_memory()?;
        Ok(self.address)
    }

    /// For a request of the buffer protocol. A `memoryview`, which NumPy also uses, requests it for host access; any other
    /// request comes from C code that may submit work on the bytes to a queue, such as `dpctl.SyclQueue.memcpy_async`.
    ///
    /// Signals are not handled here, as NumPy interprets any error, also `KeyboardInterrupt`, as an object without the
    /// buffer protocol.
    #[inline(always)] // A view of memory without work in flight takes a few loads.
    pub(crate) fn for_buffer(
        &self,
        py: Python<'_>,
        touched: Range<usize>,
        flags: c_int,
    ) -> PyResult<usize> {
        self.after_sycl(py)?;
        self.after_in_flight(py, touched, false)?;
        self.check_accessible()?;
        if flags != ffi::PyBUF_FULL_RO {
            self.export_state.mark_shared();
        }
        Ok(self.address)
    }

    /// For the next operation on a queue of zeusm; [`order`](crate::transfer::order) makes it wait for operations on other
    /// queues.
    #[inline]
    pub(crate) fn for_queue(&self, py: Python<'_>) -> PyResult<usize> {
        self.after_sycl(py)?;
        self.check_accessible()?;
        self.check_has_memory()?;
        Ok(self.address)
    }

    /// As a side of a copy on a queue of zeusm.
    #[inline(always)] // A small copy takes a few hundred instructions.
    pub(crate) fn side(&self, py: Python<'_>) -> PyResult<Side<'_>> {
        Ok(Side {
            owner: self.context_device(),
            address: self.for_queue(py)?,
            by_host: self.allows_host_copy(),
        })
    }

    /// For an asynchronous operation, which waits for `wait_list` and for the memory's SYCL queue, whether that is in-order
    /// or not: users of that queue have no event of its work to pass as a dependency.
    pub(crate) fn for_async(&self, py: Python<'_>, wait_list: &mut WaitList) -> PyResult<usize> {
        self.check_has_memory()?;
        if !self.export_state.is_shared() {
            return Ok(self.address);
        }
        for queue in self.sycl_queues() {
            if !queue.has_work(py)? {
                continue;
            }
            // The GIL is released, as the submission takes locks that another thread may hold during SYCL's wait for a host task,
            // which needs the GIL.
            if queue.reference().is_in_order() {
                let queue = queue.reference();
                let event = detach(py, || queue.barrier()).or_raise()?;
                if !event.is_complete() {
                    wait_list.add_sycl(event, Some(queue.clone()));
                }
            } else {
                queue.finish(py)?;
            }
        }
        Ok(self.address)
    }

    /// For other packages, which cannot wait for zeusm's events: waits for the operations in flight, and records that the
    /// memory is exported.
    pub(crate) fn for_export(&self, py: Python<'_>) -> PyResult<usize> {
        self.check_has_memory()?;
        self.after_in_flight(py, self.extent(), true)?;
        self.export_state.mark_shared();
        Ok(self.address)
    }

    /// Waits for the operations in flight on the bytes. If the memory migrates, none is in flight when this returns: another
    /// thread may have submitted one during a wait, but submits no more during the next one. If `signals`, their handlers run
    /// meanwhile, and an exception of theirs ends the wait.
    #[inline(always)]
    fn after_in_flight(
        &self,
        py: Python<'_>,
        touched: Range<usize>,
        signals: bool,
    ) -> PyResult<()> {
        if in_flight::any() {
            self.after_some_in_flight(py, touched, signals)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn after_some_in_flight(
        &self,
        py: Python<'_>,
        touched: Range<usize>,
        signals: bool,
    ) -> PyResult<()> {
        let mut entry = None;
        loop {
            let events = self.in_flight(py, touched.clone(), signals)?;
            for event in &events {
                in_flight::wait(py, event, None, signals)?;
            }
            if events.is_empty() || !self.migrates() {
                return Ok(());
            }
            entry.get_or_insert_with(|| {
                let allocation = self.allocation().unwrap_or_else(|| touched.clone());
                InFlight::awaited_by_host(self.context_device(), vec![allocation])
            });
        }
    }

    /// The addresses of the bytes.
    pub(crate) fn extent(&self) -> Range<usize> {
        let first = self.address;
        first..first + self.nbytes
    }

    /// Refuses shared memory of a lost device, as Intel's driver terminates the process on a host access to it.
    #[inline]
    pub(crate) fn check_accessible(&self) -> PyResult<()> {
        if self.kind == UsmKind::Shared {
            self.context_device()
                .device()
                .check_shared_memory()
                .or_raise()?;
        }
        Ok(())
    }

    /// Refuses memory of a pool that is suspended.
    #[inline]
    fn check_has_memory(&self) -> PyResult<()> {
        if is_suspended(self.address) {
            return Err(Error::Suspended).or_raise();
        }
        Ok(())
    }

    /// The events of zeusm's operations in flight on the bytes, without those of devices that are known to be lost.
    fn in_flight(
        &self,
        py: Python<'_>,
        touched: Range<usize>,
        signals: bool,
    ) -> PyResult<Vec<Event>> {
        let device = self.context_device().device();
        let is_lost = device.check_not_lost().is_err();
        let touched = if !is_lost && self.migrates() && !touched.is_empty() {
            self.allocation().unwrap_or(touched)
        } else {
            touched
        };
        let mut events = in_flight::using(py, &[touched], None, signals)?;
        events.retain(|event| event.device().check_not_lost().is_ok());
        Ok(events)
    }

    /// Whether the host itself may copy to or from the memory, once no operation in flight uses the same bytes. If the driver
    /// migrates the memory, no operation may be in flight on others of its allocation either.
    pub(crate) fn allows_host_copy(&self) -> bool {
        self.kind.is_host_accessible() && !(self.migrates() && (FREE_THREADED || in_flight::any()))
    }

    /// Whether the driver migrates the memory between the host and the device, as a whole allocation: a host access to any of
    /// its bytes discards what the device is writing to others.
    fn migrates(&self) -> bool {
        self.kind == UsmKind::Shared && self.context_device().device().migrates_shared_memory()
    }

    /// Whether no operation may use the memory, and its device has no say in a host access.
    #[cfg(not(Py_LIMITED_API))]
    #[inline]
    pub(super) fn is_at_rest(&self) -> bool {
        !self.export_state.is_shared() && !in_flight::any() && !self.migrates()
    }

    /// The allocation that the memory is in.
    fn allocation(&self) -> Option<Range<usize>> {
        let context = self.context_device().context();
        let attributes = context.pointer_attributes(self.address).ok()?;
        Some(attributes.addresses())
    }

    /// Whether `binding` has no queue, or the same as the memory's own.
    pub(crate) fn is_on(&self, binding: &QueueBinding) -> bool {
        let own = self.binding.queue();
        binding
            .queue()
            .is_none_or(|given| own.is_some_and(|own| own.reference() == given.reference()))
    }

    /// The same memory with another queue of its context. Work that was submitted to the present queue is complete when this
    /// returns, as later accesses wait for the new queue only.
    pub(crate) fn on_queue(self, py: Python<'_>, binding: Arc<QueueBinding>) -> PyResult<Self> {
        self.after_sycl(py)?;
        let own = self.context_device();
        let binding = if Arc::ptr_eq(own, binding.context_device()) {
            binding
        } else {
            // The memory keeps its device.
            binding.with_device(py, own)
        };
        let binding = binding.into();
        Ok(Self { binding, ..self })
    }

    /// Waits for the SYCL queues that may have kernels in flight on this memory. A copy on an out-of-order queue, such as
    /// dpctl's and dpnp's, would not be ordered after them.
    #[inline(always)]
    fn after_sycl(&self, py: Python<'_>) -> PyResult<()> {
        if self.export_state.is_shared() {
            self.after_sycl_queues(py)
        } else {
            Ok(())
        }
    }

    fn after_sycl_queues(&self, py: Python<'_>) -> PyResult<()> {
        let mut queues = self.sycl_queues();
        let ended = queues.try_for_each(|queue| queue.finish(py));
        ended.inspect_err(|_| {
            // SYCL may report the loss of a device only once. Recording it makes later accesses fail, too.
            let _ = detach(py, || {
                self.context_device().device().check_alive_after_error()
            });
        })
    }

    /// The memory's SYCL queue, and those of packages that take another one for it: dpctl's cached queue of the device and, for
    /// host memory that was exchanged by DLPack, that of the context's first device.
    #[inline]
    fn sycl_queues(&self) -> impl Iterator<Item = &SyclQueue> {
        let own = self.binding.queue();
        let shared = self.context_device().shared_queue();
        let of_first = match self.kind {
            UsmKind::Host => self.context_device().host_queue(),
            _ => None,
        };
        let is_other =
            move |queue: &&SyclQueue| own.is_none_or(|own| own.reference() != queue.reference());
        own.into_iter()
            .chain(shared.into_iter().chain(of_first).filter(is_other))
    }
}
