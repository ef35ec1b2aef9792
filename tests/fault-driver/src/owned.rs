//! Counts the live objects by kind, so that a test can detect leaks.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::{mem, slice};

use level_zero_sys as sys;
use parking_lot::Mutex;

/// The number of creations minus releases of each object, by kind and handle or address.
static LIVE: Mutex<BTreeMap<(&str, u64), i64>> = Mutex::new(BTreeMap::new());

fn count(kind: &'static str, thing: u64, change: i64) {
    let mut live = LIVE.lock();
    let times = live.entry((kind, thing)).or_default();
    *times += change;
    if *times == 0 {
        live.remove(&(kind, thing));
    }
}

/// Writes the live objects to `text`, of `size` bytes, for instance `1 context, 64 event`, terminated with NUL, and returns
/// their number.
///
/// # Safety
/// `text` must have room for `size` bytes, at least 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zeusm_fault_live(text: *mut c_char, size: usize) -> u64 {
    let mut kinds = BTreeMap::<&str, i64>::new();
    for ((kind, _), times) in LIVE.lock().iter() {
        // A negative count is a double release, which must not compensate a leak of another object.
        *kinds.entry(kind).or_default() += times.abs();
    }
    let told: Vec<String> = kinds
        .iter()
        .map(|(kind, times)| format!("{times} {kind}"))
        .collect();
    let told = told.join(", ");
    // SAFETY: the caller guarantees `size` writable bytes.
    let text = unsafe { slice::from_raw_parts_mut(text.cast::<u8>(), size) };
    let length = told.len().min(size - 1);
    text[..length].copy_from_slice(&told.as_bytes()[..length]);
    text[length] = 0;
    kinds.values().sum::<i64>().unsigned_abs()
}

/// Identifies an object among those of its kind.
trait Identity {
    fn identity(&self) -> u64;
}

impl Identity for usize {
    fn identity(&self) -> u64 {
        *self as u64
    }
}

/// Defines functions that forward to the CPU runtime and count the objects that they create (`makes`) or release (`ends`);
/// [`function`] looks them up. Handles, integers and pointers are declared as `usize`, which has the same ABI.
macro_rules! owned {
    ($($name:ident($($argument:ident: $type:ty),*) $does:ident $kind:literal $thing:ident;)*) => {
        /// The counting function for this name, if there is one.
        pub(crate) fn function(name: &str) -> Option<*const c_void> {
            match name {
                $(stringify!($name) => Some($name as *const c_void),)*
                _ => None,
            }
        }

        $(
            #[allow(non_snake_case)]
            unsafe extern "C" fn $name($($argument: $type),*) -> sys::ze_result_t {
                let Some(function) = crate::behind(stringify!($name)) else {
                    return sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
                };
                // SAFETY: the type is ABI-compatible with that of the specification, where handles and pointers are
                // word-sized.
                let function = unsafe {
                    mem::transmute::<
                        *const c_void,
                        unsafe extern "C" fn($($type),*) -> sys::ze_result_t,
                    >(function)
                };
                owned!($does $kind $thing, function($($argument),*))
            }
        )*
    };
    (makes $kind:literal $thing:ident, $function:ident($($argument:ident),*)) => {{
        // SAFETY: the caller guarantees valid arguments.
        let answer = unsafe { $function($($argument),*) };
        if answer == sys::ZE_RESULT_SUCCESS {
            // SAFETY: a successful call has written the handle.
            count($kind, unsafe { &*$thing }.identity(), 1);
        }
        answer
    }};
    // Counted before the call, because another thread can get the same handle as soon as it is released.
    (ends $kind:literal $thing:ident, $function:ident($($argument:ident),*)) => {{
        let identity = $thing.identity();
        count($kind, identity, -1);
        // SAFETY: the caller guarantees valid arguments.
        let answer = unsafe { $function($($argument),*) };
        if answer != sys::ZE_RESULT_SUCCESS {
            count($kind, identity, 1);
        }
        answer
    }};
}

owned! {
    zeContextCreate(driver: usize, description: usize, made: *mut usize) makes "context" made;
    zeContextCreateEx(driver: usize, description: usize, count_: usize, devices: usize, made: *mut usize)
        makes "context" made;
    zeContextDestroy(context: usize) ends "context" context;
    zeCommandListCreate(context: usize, device: usize, description: usize, made: *mut usize) makes "list" made;
    zeCommandListCreateImmediate(context: usize, device: usize, description: usize, made: *mut usize)
        makes "list" made;
    zeCommandListDestroy(list: usize) ends "list" list;
    zeEventPoolCreate(context: usize, description: usize, count_: usize, devices: usize, made: *mut usize)
        makes "event pool" made;
    zeEventPoolDestroy(pool: usize) ends "event pool" pool;
    zeEventCreate(pool: usize, description: usize, made: *mut usize) makes "event" made;
    zeEventDestroy(event: usize) ends "event" event;
    zeMemAllocHost(context: usize, description: usize, size: usize, alignment: usize, made: *mut usize)
        makes "allocation" made;
    zeMemAllocDevice(
        context: usize, description: usize, size: usize, alignment: usize, device: usize, made: *mut usize
    ) makes "allocation" made;
    zeMemAllocShared(
        context: usize, for_device: usize, for_host: usize, size: usize, alignment: usize, device: usize,
        made: *mut usize
    ) makes "allocation" made;
    zeMemFree(context: usize, pointer: usize) ends "allocation" pointer;
    zeMemFreeExt(context: usize, description: usize, pointer: usize) ends "allocation" pointer;
    zeMemOpenIpcHandle(
        context: usize, device: usize, handle: sys::ze_ipc_mem_handle_t, flags: u32, made: *mut usize
    ) makes "mapping" made;
    zeMemCloseIpcHandle(context: usize, pointer: usize) ends "mapping" pointer;
}
