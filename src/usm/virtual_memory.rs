//! Device memory at reserved addresses, whose physical memory can be given back and be put there again.
//!
//! Source: Level Zero specification, `zeVirtualMemReserve`, `zeVirtualMemMap`, `zePhysicalMemCreate`.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, Ordering};

use level_zero_sys as sys;
use zeusm_process::{Local, Mutex};

use super::{budget, context_map};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::history::Place;
use crate::kind::UsmKind;
use crate::pool;

/// The virtual memory of one pool.
#[derive(Debug)]
pub(super) struct VirtualMemory {
    context: Context,
    device: Device,
    /// A fork's child has none.
    state: Local<Mutex<State>>,
    /// Whether it is suspended, or is about to be; changed with the state's lock.
    is_suspended: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// By first address. A suspension in progress has them.
    chunks: BTreeMap<usize, Chunk>,
    is_changing: bool,
    /// The chunks that were freed during the change.
    freed: Vec<usize>,
}

/// One allocation.
#[derive(Debug)]
struct Chunk {
    /// The mapped addresses.
    mapped: Range<usize>,
    /// The reserved ones.
    reserved: Range<usize>,
    physical: Option<Physical>,
    is_mapped: bool,
    /// The bytes, while they are nowhere else.
    saved: Option<Saved>,
}

/// A copy of a chunk's bytes, by the layer above.
pub(crate) type Saved = Box<dyn Any + Send>;

#[derive(Clone, Copy, Debug)]
struct Physical(sys::ze_physical_mem_handle_t);

// SAFETY: the specification allows any thread to use the handle.
unsafe impl Send for Physical {}

impl VirtualMemory {
    pub(super) fn new(context: &Context, device: &Device) -> Self {
        Self {
            context: context.clone(),
            device: device.clone(),
            state: Local::new(),
            is_suspended: AtomicBool::new(false),
        }
    }

    /// Whether its memory must not be used, nor allocated.
    pub(super) fn is_suspended(&self) -> bool {
        self.is_suspended.load(Ordering::Relaxed)
    }

    /// Allocates `size` bytes, at an alignment of 0 or a power of two.
    ///
    /// # Errors
    /// [`Error::Suspended`], those of the device's budget, and Level Zero's.
    pub(super) fn allocate(
        &self,
        size: usize,
        alignment: usize,
        place: Place,
    ) -> Result<NonNull<c_void>> {
        if self.is_suspended() {
            return Err(Error::Suspended);
        }
        let mut chunk = self.reserve(size, alignment)?;
        let filled = self.fill(&mut chunk);
        let start = chunk.mapped.start;
        let base = NonNull::new(ptr::with_exposed_provenance_mut(start)).ok_or(Error::NullPointer);
        let base = filled.and(base);
        let mut state = self.state.get_or_default().lock();
        let is_usable = !self.is_suspended();
        match base {
            Ok(base) if is_usable => {
                context_map::register(start, chunk.mapped.len(), place, false);
                state.chunks.insert(start, chunk);
                Ok(base)
            }
            base => {
                drop(state);
                self.end(chunk);
                base.and(Err(Error::Suspended))
            }
        }
    }

    /// Frees the allocation that begins at `base`.
    pub(super) fn free(&self, base: usize) {
        context_map::unregister(base);
        let mut state = self.state.get_or_default().lock();
        let chunk = state.chunks.remove(&base);
        if chunk.is_none() && state.is_changing {
            state.freed.push(base);
        }
        drop(state);
        if let Some(chunk) = chunk {
            self.end(chunk);
        }
    }

    /// Begins to suspend or resume it: from now on its memory must not be used.
    ///
    /// # Errors
    /// [`Error::Suspended`] while another thread does so.
    pub(super) fn change(&self) -> Result<Suspension<'_>> {
        let mut state = self.state.get_or_default().lock();
        if mem::replace(&mut state.is_changing, true) {
            return Err(Error::Suspended);
        }
        self.is_suspended.store(true, Ordering::Relaxed);
        let chunks = mem::take(&mut state.chunks);
        chunks
            .keys()
            .for_each(|base| context_map::set_suspended(*base, true));
        Ok(Suspension {
            memory: self,
            chunks,
            end: None,
        })
    }

    /// The library, the context's and the device's handles.
    fn handles(
        &self,
    ) -> (
        &'static sys::Library,
        sys::ze_context_handle_t,
        sys::ze_device_handle_t,
    ) {
        let library = self.context.library();
        (library, self.context.handle(), self.device.handle())
    }

    /// Reserves addresses for `size` bytes.
    fn reserve(&self, size: usize, alignment: usize) -> Result<Chunk> {
        let (library, context, device) = self.handles();
        let mut page = 0;
        // SAFETY: context and device are alive.
        unsafe {
            call!(
                library,
                zeVirtualMemQueryPageSize(context, device, size, &mut page)
            )
        }?;
        let page = page.max(1);
        let size = size.next_multiple_of(page);
        // Reservations begin at a multiple of the page.
        let room = size + alignment.max(page) - page;
        let (anywhere, mut start) = (ptr::null(), ptr::null_mut());
        // SAFETY: the context is alive; null leaves the choice to the driver.
        unsafe {
            call!(
                library,
                zeVirtualMemReserve(context, anywhere, room, &mut start)
            )
        }?;
        let first = start.expose_provenance().next_multiple_of(alignment.max(1));
        Ok(Chunk {
            mapped: first..first + size,
            reserved: start.addr()..start.addr() + room,
            physical: None,
            is_mapped: false,
            saved: None,
        })
    }

    /// Gives a chunk physical memory and maps it, whatever of this it lacks.
    fn fill(&self, chunk: &mut Chunk) -> Result<()> {
        let (library, context, _) = self.handles();
        let (start, size) = (pointer(&chunk.mapped), chunk.mapped.len());
        if chunk.physical.is_none() {
            chunk.physical = Some(pool::retry_out_of_memory(|| self.create(size))?);
        }
        if let Some(Physical(memory)) = chunk.physical.filter(|_| !chunk.is_mapped) {
            let access = sys::ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE;
            // SAFETY: the chunk has reserved the addresses, where nothing is mapped, and the memory has the size.
            unsafe {
                call!(
                    library,
                    zeVirtualMemMap(context, start, size, memory, 0, access)
                )
            }?;
            chunk.is_mapped = true;
        }
        Ok(())
    }

    fn create(&self, size: usize) -> Result<Physical> {
        let (library, context, device) = self.handles();
        let reserved = budget::reserve(&self.device, UsmKind::Device, size)?;
        let mut wanted = sys::structure::<sys::ze_physical_mem_desc_t>();
        wanted.size = size;
        let mut made = ptr::null_mut();
        // SAFETY: context and device are alive; the description outlives the call.
        unsafe {
            call!(
                library,
                zePhysicalMemCreate(context, device, &mut wanted, &mut made)
            )
        }?;
        reserved.keep();
        Ok(Physical(made))
    }

    /// Unmaps a chunk, which keeps its physical memory.
    fn unmap(&self, chunk: &mut Chunk) -> Result<()> {
        let (library, context, _) = self.handles();
        let (start, size) = (pointer(&chunk.mapped), chunk.mapped.len());
        if chunk.is_mapped {
            // SAFETY: the chunk has mapped the addresses, which are not in use.
            unsafe { call!(library, zeVirtualMemUnmap(context, start, size)) }?;
            chunk.is_mapped = false;
        }
        Ok(())
    }

    /// Gives the physical memory of a chunk back that is not mapped; returns its bytes. Where the driver refuses, the chunk keeps it.
    fn give_back(&self, chunk: &mut Chunk) -> usize {
        let (library, context, _) = self.handles();
        let Some(Physical(memory)) = chunk.physical.filter(|_| !chunk.is_mapped) else {
            return 0;
        };
        // SAFETY: the memory is of this context and mapped nowhere.
        if unsafe { call!(library, zePhysicalMemDestroy(context, memory)) }.is_err() {
            return 0;
        }
        chunk.physical = None;
        budget::release(&self.device, UsmKind::Device, chunk.mapped.len());
        chunk.mapped.len()
    }

    /// Ends a chunk. Failures are ignored, as a drop cannot report them.
    fn end(&self, mut chunk: Chunk) {
        let (library, context, _) = self.handles();
        let _ = self.unmap(&mut chunk);
        self.give_back(&mut chunk);
        let (start, size) = (pointer(&chunk.reserved), chunk.reserved.len());
        // SAFETY: the chunk has reserved the addresses.
        let _ = unsafe { call!(library, zeVirtualMemFree(context, start, size)) };
    }
}

pub(crate) fn pointer(range: &Range<usize>) -> *mut c_void {
    ptr::with_exposed_provenance_mut(range.start)
}

/// A pool that is about to be suspended or resumed: its memory must not be used. If neither comes to an end, it is as before.
#[derive(Debug)]
pub(crate) struct Suspension<'a> {
    memory: &'a VirtualMemory,
    chunks: BTreeMap<usize, Chunk>,
    /// Whether it is suspended at the end.
    end: Option<bool>,
}

impl Suspension<'_> {
    /// The addresses of the memory.
    pub(crate) fn ranges(&self) -> Vec<Range<usize>> {
        let chunks = self.chunks.values();
        chunks.map(|chunk| chunk.mapped.clone()).collect()
    }

    /// Gives the physical memory back; `save`, if any, copies each range before. Returns the bytes that were given back. After an
    /// error, no byte is lost: the memory can be used as before, unless it cannot be mapped again, and then after
    /// [`resume`](Self::resume).
    ///
    /// # Errors
    /// Those of `save` and of Level Zero.
    ///
    /// # Safety
    /// No work on the memory is in flight, and none is submitted before it is resumed.
    pub(crate) unsafe fn suspend(
        mut self,
        save: Option<impl Fn(&Range<usize>) -> Result<Saved>>,
    ) -> Result<usize> {
        let memory = self.memory;
        // What an attempt to resume has not restored is still saved.
        let full = |chunk: &&mut Chunk| chunk.is_mapped && chunk.saved.is_none();
        let mut saved = Vec::new();
        if let Some(save) = save {
            for chunk in self.chunks.values_mut().filter(full) {
                saved.push((chunk.mapped.start, save(&chunk.mapped)?));
            }
        }
        let mut unmapped = self.chunks.values_mut();
        if let Err(error) = unmapped.try_for_each(|chunk| memory.unmap(chunk)) {
            // The bytes are in the physical memory.
            let _ = self
                .chunks
                .values_mut()
                .try_for_each(|chunk| memory.fill(chunk));
            return Err(error);
        }
        for (start, saved) in saved {
            if let Some(chunk) = self.chunks.get_mut(&start) {
                chunk.saved = Some(saved);
            }
        }
        self.end = Some(true);
        Ok(self
            .chunks
            .values_mut()
            .map(|chunk| memory.give_back(chunk))
            .sum())
    }

    /// Puts physical memory at the addresses again; `restore` copies what was saved. After an error it can be repeated.
    ///
    /// # Errors
    /// Those of `restore`, of the device's budget and of Level Zero.
    pub(crate) fn resume(
        mut self,
        restore: impl Fn(&Range<usize>, &Saved) -> Result<()>,
    ) -> Result<()> {
        for chunk in self.chunks.values_mut() {
            self.memory.fill(chunk)?;
            if let Some(saved) = &chunk.saved {
                restore(&chunk.mapped, saved)?;
                chunk.saved = None;
            }
        }
        self.end = Some(false);
        Ok(())
    }
}

impl Drop for Suspension<'_> {
    fn drop(&mut self) {
        let is_whole = |chunk: &Chunk| chunk.is_mapped && chunk.saved.is_none();
        let is_suspended = self
            .end
            .unwrap_or_else(|| !self.chunks.values().all(is_whole));
        let mut state = self.memory.state.get_or_default().lock();
        let freed = mem::take(&mut state.freed);
        let (freed, kept) = mem::take(&mut self.chunks)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(base, _)| freed.contains(base));
        kept.keys()
            .for_each(|base| context_map::set_suspended(*base, is_suspended));
        state.chunks = kept;
        state.is_changing = false;
        self.memory
            .is_suspended
            .store(is_suspended, Ordering::Relaxed);
        drop(state);
        freed.into_values().for_each(|chunk| self.memory.end(chunk));
    }
}
