//! One allocation, owned: freed once, when its last owner lets go.

use std::any::Any;
use std::ffi::c_void;
use std::mem;
use std::ptr::{self, NonNull};

use super::{LevelZero, is_default};
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kind::UsmKind;
use crate::pool::{self, Block, Pool, Provider};
use crate::process::{Local, Own};

/// An allocation of USM whose kind is known at run time only.
///
/// Of no bytes, it is no allocation: the pointer is null and nobody is asked.
#[derive(Debug)]
pub struct Allocation {
    size: usize,
    source: Source,
    /// What a layer above keeps with it: its export to other processes, once a handle of it was asked for.
    export: Local<Box<dyn Any + Send + Sync>>,
}

/// Where the memory goes back to.
#[derive(Debug)]
enum Source {
    /// Apart: one that is not a pool's costs so much that a little more does not matter.
    Direct(Box<Own<Direct>>),
    Pool(Block<LevelZero>),
}

#[derive(Debug)]
struct Direct {
    provider: LevelZero,
    /// Null when there are no bytes.
    pointer: *mut c_void,
    size: usize,
}

// SAFETY: the pointer is owned, and freeing USM is legal from any thread.
unsafe impl Send for Allocation {}
// SAFETY: shared references give out the address only; whoever follows it answers for races.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Allocates `size` bytes in `context` for `device`, at an alignment of 0 (the runtime's choice) or a power of
    /// two: from the context's own pool where [`is_default`] says so, else directly.
    ///
    /// # Errors
    /// [`Error::Alignment`] for any other alignment or one above [`LARGEST_ALIGNMENT`](pool::LARGEST_ALIGNMENT); [`Error::Allocation`] with
    /// Level Zero's answer when there is no such memory.
    pub fn new(
        context: &Context,
        device: &Device,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Result<Self> {
        if size > 0 && is_default() {
            let pooled = |pool: &_| Self::in_pool(pool, size, alignment);
            if let Some(answer) = context.with_pool(device, kind, pooled) {
                return answer;
            }
        }
        Self::direct(context, device, kind, size, alignment)
    }

    /// Allocates from Level Zero, in no pool.
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
        let provider = LevelZero::new(context, device, kind);
        let pointer = if size == 0 {
            ptr::null_mut()
        } else {
            provider
                .allocate(size, alignment)
                .map_err(|cause| failed(&provider, size, alignment, cause))?
                .as_ptr()
        };
        Ok(Self {
            size,
            source: Source::Direct(Box::new(Own::new(Direct {
                provider,
                pointer,
                size,
            }))),
            export: Local::new(),
        })
    }

    /// Allocates from a pool.
    ///
    /// # Errors
    /// As [`new`](Self::new); the cause is [`Error::Pool`], with the pool's figures.
    pub fn in_pool(pool: &Pool<LevelZero>, size: usize, alignment: usize) -> Result<Self> {
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
        let block = pool
            .allocate(size, alignment)
            .map_err(|cause| failed(pool.provider(), size, alignment, cause))?;
        Ok(Self::of_block(block, size))
    }

    /// Allocates from a pool where a block lies ready, see [`Pool::allocate_kept`].
    #[must_use]
    pub fn kept_in_pool(pool: &Pool<LevelZero>, size: usize, alignment: usize) -> Option<Self> {
        if size == 0 {
            return None;
        }
        let block = pool.allocate_kept(size, alignment)?;
        Some(Self::of_block(block, size))
    }

    /// Allocates as [`new`](Self::new) does, where a block lies ready in the context's own pool: Level Zero is not called.
    #[must_use]
    pub fn kept(
        context: &Context,
        device: &Device,
        kind: UsmKind,
        size: usize,
        alignment: usize,
    ) -> Option<Self> {
        if !is_default() {
            return None;
        }
        let kept = |pool: &_| Self::kept_in_pool(pool, size, alignment);
        context.with_pool(device, kind, kept)?
    }

    fn of_block(block: Block<LevelZero>, size: usize) -> Self {
        Self {
            size,
            source: Source::Pool(block),
            export: Local::new(),
        }
    }

    /// Where the memory begins; null when it has no bytes.
    #[must_use]
    pub fn as_ptr(&self) -> *mut c_void {
        match &self.source {
            Source::Direct(direct) => direct.pointer,
            Source::Pool(block) => block.address().as_ptr(),
        }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The kind of memory.
    #[must_use]
    pub fn kind(&self) -> UsmKind {
        self.provider().kind()
    }

    /// The context it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.provider().context()
    }

    /// The device it was allocated for. Host memory is for all devices of the context; this is the one named then.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.provider().device()
    }

    /// Whether the memory is a pool's.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        matches!(self.source, Source::Pool(_))
    }

    /// Whether other processes may have opened the memory: a handle of it was asked for.
    #[must_use]
    pub fn is_exported(&self) -> bool {
        self.export.get().is_some()
    }

    fn provider(&self) -> &LevelZero {
        match &self.source {
            Source::Direct(direct) => &direct.provider,
            Source::Pool(block) => block.provider(),
        }
    }

    /// What other processes open it by, made when first asked for and dropped before the memory is freed. `None` when it
    /// was made as another type, which it never is.
    pub(crate) fn export<X: Any + Send + Sync, E>(
        &self,
        make: impl FnOnce() -> Result<X, E>,
    ) -> Result<Option<&X>, E> {
        let export = self
            .export
            .get_or_try_init(|| make().map(|export| Box::new(export) as _))?;
        Ok(export.downcast_ref())
    }

    /// The first byte, or a dangling pointer when there is none: what slices begin with.
    pub(super) fn first_byte(&self) -> NonNull<u8> {
        NonNull::new(self.as_ptr().cast()).unwrap_or(NonNull::dangling())
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // It is struck out before the memory is freed.
        drop(mem::take(&mut self.export));
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        if let Some(pointer) = NonNull::new(self.pointer) {
            // SAFETY: the pointer came from this provider, this is its only owner, and whatever runs on it holds a
            // reference to the allocation.
            unsafe { self.provider.free(pointer, self.size) };
        }
    }
}

fn failed(provider: &LevelZero, size: usize, alignment: usize, cause: Error) -> Error {
    let device = provider.device();
    Error::Allocation {
        kind: provider.kind(),
        size,
        alignment,
        device: device.name().to_owned(),
        limit: device.largest_allocation(),
        cause: Box::new(cause),
    }
}
