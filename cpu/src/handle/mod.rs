//! Handles: numbers that refer to live objects, so that a null, destroyed or foreign handle or one of another kind is
//! an error and never undefined behaviour.
//!
//! A handle is not an address. It contains the object's kind, its slot in that kind's table and the slot's generation,
//! under a tag that makes it an invalid address.

mod table;

use std::sync::Arc;

use level_zero_sys as sys;

use crate::abi::arguments::input_array;
use crate::abi::entry::Argument;
use crate::abi::result::{ZeResult, ensure};
pub use table::Table;
use table::{GENERATION_BITS, SLOT_BITS};

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Kind {
    Driver = 1,
    Device,
    Context,
    CommandQueue,
    CommandList,
    Fence,
    EventPool,
    Event,
    Module,
    ModuleBuildLog,
    Kernel,
    PhysicalMemory,
    Image,
    Sampler,
    Graph,
    ExecutableGraph,
}

/// The top byte of every handle: makes it a non-canonical address on every 64-bit processor.
const TAG: u64 = 0x5A;

/// A type whose objects callers hold by handle.
pub trait Object: Send + Sync + Sized + 'static {
    /// The type that the headers' handle points to.
    type Opaque;
    /// The kind that its handles carry.
    const KIND: Kind;
    /// Where its live objects are.
    fn table() -> &'static Table<Self>;
}

/// Gives a type its handle: the opaque type of the headers, the kind, and a table.
macro_rules! object {
    ($type:ty, $opaque:ty, $kind:ident) => {
        impl $crate::handle::Object for $type {
            type Opaque = $opaque;
            const KIND: $crate::handle::Kind = $crate::handle::Kind::$kind;
            fn table() -> &'static $crate::handle::Table<Self> {
                static TABLE: $crate::handle::Table<$type> = $crate::handle::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use object;

/// Defines an entry point for each line, which writes what the expression reads from an object.
macro_rules! getters {
    ($object:ty { $($(#[$doc:meta])* $name:ident: $type:ty = $read:expr;)* }) => {$(
        $(#[$doc])*
        pub fn $name(
            object: ::std::sync::Arc<$object>,
            out: &mut $type,
        ) -> $crate::abi::result::ZeResult {
            let read: fn(&$object) -> $crate::abi::result::ZeResult<$type> = $read;
            *out = read(&object)?;
            Ok(())
        }
    )*};
}
pub(crate) use getters;

impl<O: Object> Argument<*mut O::Opaque> for Arc<O> {
    unsafe fn check(raw: *mut O::Opaque) -> ZeResult<Self> {
        resolve(raw)
    }
}

/// The live objects that the handles of an array name.
impl<O: Object> Argument<(u32, *mut *mut O::Opaque)> for Vec<Arc<O>> {
    unsafe fn check((length, raw): (u32, *mut *mut O::Opaque)) -> ZeResult<Self> {
        let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
        // SAFETY: the caller vouches for the array.
        let handles = unsafe { input_array(raw, length, null) }?;
        handles.iter().map(|handle| resolve(*handle)).collect()
    }
}

/// An object as an argument, with its handle.
pub struct Named<O: Object>(pub Arc<O>, pub *mut O::Opaque);

impl<O: Object> Argument<*mut O::Opaque> for Named<O> {
    unsafe fn check(raw: *mut O::Opaque) -> ZeResult<Self> {
        Ok(Self(resolve(raw)?, raw))
    }
}

/// Makes a handle for `object`.
///
/// # Errors
/// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY` when 2^24 objects of the kind are alive.
pub fn register<T: Object>(object: Arc<T>) -> ZeResult<*mut T::Opaque> {
    let (slot, generation) = T::table()
        .insert(object)
        .ok_or(sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    Ok(encode(T::KIND, slot, generation) as *mut T::Opaque)
}

/// Makes a handle for a new object, which the caller gets at `place`.
///
/// # Errors
/// As for [`register`].
pub fn hand_out<T: Object>(object: T, place: &mut *mut T::Opaque) -> ZeResult {
    *place = register(Arc::new(object))?;
    Ok(())
}

/// The live object that `handle` names.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_NULL_HANDLE` for null, `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a handle of another
/// kind, of a destroyed object, or not of this runtime.
pub fn resolve<T: Object>(handle: *mut T::Opaque) -> ZeResult<Arc<T>> {
    let (slot, generation) = decode(T::KIND, handle as u64)?;
    T::table()
        .get(slot, generation)
        .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// Ends the life of `handle` and returns its object.
///
/// # Errors
/// As for [`resolve`].
pub fn retire<T: Object>(handle: *mut T::Opaque) -> ZeResult<Arc<T>> {
    let (slot, generation) = decode(T::KIND, handle as u64)?;
    T::table()
        .remove(slot, generation)
        .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// `ze...Destroy` of most kinds of objects. What was made of the object or submitted with it has what it needs, and is not affected.
pub fn destroy<T: Object>(handle: *mut T::Opaque) -> ZeResult {
    retire::<T>(handle).map(drop)
}

/// The handle of an object that lives as long as the process: number `number` of its kind, which has no [`Table`].
pub const fn permanent(kind: Kind, number: u32) -> u64 {
    encode(kind, number, 0)
}

/// The number of the permanent object that `handle` would name; the caller checks that there is one.
///
/// # Errors
/// As for [`resolve`].
pub fn permanent_number<T>(kind: Kind, handle: *mut T) -> ZeResult<u32> {
    let (number, generation) = decode(kind, handle as u64)?;
    ensure(generation == 0, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    Ok(number)
}

const fn encode(kind: Kind, slot: u32, generation: u32) -> u64 {
    TAG << 56
        | (kind as u64) << (SLOT_BITS + GENERATION_BITS)
        | (generation as u64) << SLOT_BITS
        | slot as u64
}

fn decode(kind: Kind, handle: u64) -> ZeResult<(u32, u32)> {
    ensure(handle != 0, sys::ZE_RESULT_ERROR_INVALID_NULL_HANDLE)?;
    let slot = (handle & ((1 << SLOT_BITS) - 1)) as u32;
    let generation = (handle >> SLOT_BITS & ((1 << GENERATION_BITS) - 1)) as u32;
    ensure(
        encode(kind, slot, generation) == handle,
        sys::ZE_RESULT_ERROR_INVALID_ARGUMENT,
    )?;
    Ok((slot, generation))
}
