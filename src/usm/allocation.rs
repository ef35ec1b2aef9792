//! An owned allocation.

use std::any::Any;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
#[cfg(target_os = "linux")] // Used by `ipc` only.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zeusm_process::Owned;
use zeusm_process::memory::{Bound, Memory};

use super::in_place::InPlace;
use super::{LevelZeroProvider, budget, context_map, exports, pools_enabled};
use crate::context::Context;
use crate::device::{Device, MemoryState};
use crate::error::{Error, Result};
use crate::history::{self, Action, Failure, Place};
use crate::kind::UsmKind;
use crate::pool::{self, Block, Pool, Provider};

/// An allocation of USM whose kind is known at run time only. The drop frees it.
///
/// With a size of 0 the pointer is null, and Level Zero is not called.
#[derive(Debug)]
pub struct Allocation {
    source: Source,
}

// There may be millions of them.
const _: () = assert!(size_of::<Option<Allocation>>() == 16);

/// The source of the allocation, to which the memory is freed.
#[derive(Debug)]
enum Source {
    /// Boxed, as it is much larger than a block, and the cost of the box is small compared with the driver's call.
    Direct(Box<Owned<Direct>>),
    Pool(Block<LevelZeroProvider>),
}

#[derive(Debug)]
struct Direct {
    provider: LevelZeroProvider,
    /// Null when there are no bytes.
    pointer: *mut c_void,
    size: usize,
    /// Whether there may be an export of it.
    has_export: AtomicBool,
    /// For memory of the program.
    in_place: Option<InPlace>,
}

// SAFETY: the pointer is owned, and any thread may free USM.
unsafe impl Send for Allocation {}
// SAFETY: shared references only return the address; dereferencing it is the caller's responsibility.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Allocates `size` bytes in `context` for `device`, at an alignment of 0 (the runtime's choice) or a power of
    /// two: from the context's default pool if [`pools_enabled`], else directly.
    ///
    /// # Errors
    /// [`Error::Alignment`] for any other alignment or one above [`LARGEST_ALIGNMENT`](pool::LARGEST_ALIGNMENT);
    /// [`Error::Allocation`] with Level Zero's result when the allocation fails.
    pub fn new(
        context: &Context,
        device: &Device,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Result<Self> {
        if size > 0 && pools_enabled() {
            let pooled = |pool: &_| Self::in_pool(pool, size, alignment);
            if let Some(answer) = context.with_pool(device, kind, pooled) {
                return answer;
            }
        }
        Self::direct(context, device, kind, size, alignment)
    }

    /// Allocates from Level Zero, without a pool.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn direct(
        context: &Context,
        device: &Device,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Result<Self> {
        pool::check_alignment(alignment)?;
        let provider = LevelZeroProvider::unpooled(context, device, kind);
        let pointer = if size == 0 {
            ptr::null_mut()
        } else {
            let pointer = pool::retry_out_of_memory(|| provider.allocate(size, alignment))
                .map_err(|cause| failed(&provider, &provider.place(), size, alignment, cause))?;
            let (block, place) = ((pointer.addr().get(), size), provider.place());
            history::note(Action::Reserve, || block, &place, None);
            history::note(Action::Allocate, || block, &place, None);
            pointer.as_ptr()
        };
        Ok(Self {
            source: Source::Direct(Box::new(Owned::new(Direct {
                provider,
                pointer,
                size,
                has_export: AtomicBool::new(false),
                in_place: None,
            }))),
        })
    }

    /// Makes memory of the program host memory of `context`, where it is. `owner` keeps it, and is dropped after its end. Of the
    /// pages that have the bytes, devices can access all; another process can get none of them.
    ///
    /// # Errors
    /// [`Error::InPlace`] with the cause: the driver lacks the extension, a page is USM already, or Level Zero's result.
    ///
    /// # Safety
    /// The bytes stay where they are, and writable, until `owner` is dropped, and nothing else is mapped there.
    pub unsafe fn from_host(
        context: &Context,
        device: &Device,
        bytes: NonNull<[u8]>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        let mut new = Direct {
            provider: LevelZeroProvider::unpooled(context, device, UsmKind::Host),
            pointer: ptr::null_mut(),
            size: bytes.len(),
            has_export: AtomicBool::new(false),
            in_place: None,
        };
        if !bytes.is_empty() {
            // SAFETY: the caller vouches for the bytes.
            new.in_place = Some(unsafe { InPlace::new(context, device, bytes, owner) }?);
            new.pointer = bytes.cast().as_ptr();
        }
        Ok(Self {
            source: Source::Direct(Box::new(Owned::new(new))),
        })
    }

    /// Whether it is memory of the program.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        matches!(&self.source, Source::Direct(direct) if direct.in_place.is_some())
    }

    /// Allocates from a pool.
    ///
    /// # Errors
    /// As [`new`](Self::new); the cause is [`Error::Pool`], with the pool's figures.
    pub fn in_pool(pool: &Pool<LevelZeroProvider>, size: usize, alignment: usize) -> Result<Self> {
        pool::check_alignment(alignment)?;
        if size == 0 {
            let provider = pool.provider();
            return Self::direct(
                provider.context(),
                provider.device(),
                provider.kind(),
                size,
                alignment,
            );
        }
        let allocate = || match pool.provider().is_suspended() {
            true => Err(Error::Suspended),
            false => pool.allocate(size, alignment),
        };
        let block = allocate()
            .map_err(|cause| failed(pool.provider(), &pool.place(), size, alignment, cause))?;
        Ok(Self::of_block(block))
    }

    /// Allocates from a pool if it has a cached block and is not suspended, see [`Pool::allocate_cached`].
    #[must_use]
    #[inline(always)] // See `Pool::allocate_cached`.
    pub fn in_pool_cached(
        pool: &Pool<LevelZeroProvider>,
        size: usize,
        alignment: usize,
    ) -> Option<Self> {
        if size == 0 || pool.provider().is_suspended() {
            return None;
        }
        let block = pool.allocate_cached(size, alignment)?;
        Some(Self::of_block(block))
    }

    /// Allocates as [`new`](Self::new) if the context's default pool has a cached block. Level Zero is not called.
    #[must_use]
    #[inline(always)]
    pub fn cached(
        context: &Context,
        device: &Device,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Option<Self> {
        if !pools_enabled() {
            return None;
        }
        let cached = |pool: &_| Self::in_pool_cached(pool, size, alignment);
        context.with_pool(device, kind, cached)?
    }

    fn of_block(block: Block<LevelZeroProvider>) -> Self {
        Self {
            source: Source::Pool(block),
        }
    }

    /// The address of the memory; null when it has no bytes.
    #[must_use]
    #[inline]
    pub fn as_ptr(&self) -> *mut c_void {
        match &self.source {
            Source::Direct(direct) => direct.pointer,
            Source::Pool(block) => block.address().as_ptr(),
        }
    }

    /// The size in bytes.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        match &self.source {
            Source::Direct(direct) => direct.size,
            Source::Pool(block) => block.size(),
        }
    }

    /// The kind of memory.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> UsmKind {
        self.provider().kind()
    }

    /// The context it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.provider().context()
    }

    /// The device of the allocation. For host memory, which all devices of the context can access, the one given at the
    /// allocation.
    #[must_use]
    #[inline]
    pub fn device(&self) -> &Device {
        self.provider().device()
    }

    /// Whether it is of a pool that can be suspended.
    #[must_use]
    pub fn is_suspendable(&self) -> bool {
        self.provider().is_suspendable()
    }

    /// Whether the memory belongs to a pool.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        matches!(self.source, Source::Pool(_))
    }

    /// Whether a handle of the memory was requested, so that other processes may have opened it.
    #[must_use]
    pub fn is_exported(&self) -> bool {
        self.may_have_export().load(Ordering::Relaxed) && exports::get(self.address()).is_some()
    }

    fn address(&self) -> usize {
        self.as_ptr().addr()
    }

    /// Whether there may be an export. A fork's child inherits it, but no export.
    fn may_have_export(&self) -> &AtomicBool {
        match &self.source {
            Source::Direct(direct) => &direct.has_export,
            Source::Pool(block) => block.mark(),
        }
    }

    #[inline]
    fn provider(&self) -> &LevelZeroProvider {
        match &self.source {
            Source::Direct(direct) => &direct.provider,
            Source::Pool(block) => block.provider(),
        }
    }

    /// The export, made on first use and dropped before the memory is freed. `None` if it is of another type; there is only
    /// one. When two threads make it concurrently, one of the two is dropped.
    #[cfg(target_os = "linux")] // Used by `ipc` only.
    pub(crate) fn export<X: Any + Send + Sync, E>(
        &self,
        make: impl FnOnce() -> Result<X, E>,
    ) -> Result<Option<Arc<X>>, E> {
        let export = match exports::get(self.address()) {
            Some(export) => export,
            None => {
                let made = Arc::new(make()?);
                self.may_have_export().store(true, Ordering::Relaxed);
                exports::insert(self.address(), made)
            }
        };
        Ok(export.downcast().ok())
    }

    /// The address of the first byte for slices; dangling when there are no bytes.
    pub(super) fn first_byte(&self) -> NonNull<u8> {
        NonNull::new(self.as_ptr().cast()).unwrap_or(NonNull::dangling())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // The export has to be removed before the memory is freed.
        if self.may_have_export().load(Ordering::Relaxed) {
            exports::remove(self.address());
            self.may_have_export().store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        if self.in_place.is_some() {
            return;
        }
        if let Some(pointer) = NonNull::new(self.pointer) {
            let (block, place) = ((pointer.addr().get(), self.size), self.provider.place());
            history::note(Action::Free, || block, &place, None);
            history::note(Action::Release, || block, &place, None);
            // SAFETY: the pointer came from this provider, this is its only owner, and work in flight on it would own a
            // reference to the allocation.
            unsafe { self.provider.free(pointer, self.size) };
        }
    }
}

/// How many stacks a failure names.
const HOLDERS: usize = 3;

fn failed(
    provider: &LevelZeroProvider,
    place: &Place,
    size: usize,
    alignment: usize,
    cause: Error,
) -> Error {
    let device = provider.device();
    let same_memory = in_memory_of(device, place);
    let is_of_pool = matches!(cause.root(), Error::PoolLimit { .. });
    let counts = |other: &Place| same_memory(other) && (!is_of_pool || other.pool == place.pool);
    let error = Error::Allocation {
        kind: provider.kind(),
        size,
        alignment,
        device: device.to_string(),
        bounds: match cause.root() {
            Error::Call { .. } if cause.is_out_of_memory() => bounds(device, place, size),
            _ => Box::default(),
        },
        holders: history::holders(counts, HOLDERS).into(),
        cause: Box::new(cause),
    };
    if history::is_recording() {
        history::failed(size, place, failure(device, place, &error));
    }
    error
}

/// What limits the memory and has the least free, and what else has less free than `size`.
fn bounds(device: &Device, place: &Place, size: usize) -> Box<[Bound]> {
    let mut all = Vec::from(Bound::all());
    let own = free_memory(device, place).unwrap_or_default();
    match all.first_mut() {
        // The memory of the CPU runtime's device is the machine's, or a control group's, and it keeps a reserve.
        Some(first) if own.total == Memory::now().total => first.free = first.free.min(own.free),
        _ if own.total == 0 => (),
        _ => all.push(Bound {
            what: "the device limits its memory",
            limit: own.total,
            free: own.free,
            is_set: false,
        }),
    }
    all.sort_by_key(|bound| bound.free);
    let more = all.iter().skip(1).take_while(|it| it.free < size as u64);
    all.truncate(1 + more.count());
    all.into()
}

/// That of the device, for memory there, if the driver tells.
fn free_memory(device: &Device, place: &Place) -> Option<MemoryState> {
    let state = device.memory_state().ok();
    state.filter(|_| is_in_device_memory(device, place))
}

fn is_in_device_memory(device: &Device, place: &Place) -> bool {
    place.kind.is_none_or(|kind| budget::counts(device, kind))
}

/// Whether memory is in the same memory as that of `place`, so that a free of one makes room for the other.
fn in_memory_of(device: &Device, place: &Place) -> impl Fn(&Place) -> bool {
    let in_device = is_in_device_memory(device, place);
    move |other| other.device == place.device && is_in_device_memory(device, other) == in_device
}

/// What is known of the memory at a failure.
fn failure(device: &Device, place: &Place, error: &Error) -> Failure {
    let counts = in_memory_of(device, place);
    let (mut held, mut in_use) = (0, 0);
    let slabs = context_map::held();
    for slab in slabs.iter().filter(|slab| counts(&slab.place)) {
        held += slab.range.len();
        in_use += slab.used_bytes;
    }
    Failure {
        message: error.to_string(),
        cached: held - in_use,
        in_use,
        free: free_memory(device, place).map(|state| state.free),
        ..Failure::default()
    }
}
