//! Shared by the tests: the runtime, opened in one of three ways, and short names for common calls.
//!
//! `ZEUSM_TEST_MODE` selects the way: `direct` (the default), this library in the loader's place; `loader`, as a driver
//! behind the system's loader; `validated`, the same with the loader's validation layer. A process can have only one of
//! them, and the loader reads its environment when it is opened: `make test-rust` runs all three.

#![allow(dead_code, clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;

use level_zero_sys as sys;
pub use sys::ZE_RESULT_SUCCESS as OK;
use sys::extensions;

pub type Result = sys::ze_result_t;
pub type Memory = *mut c_void;
pub type List = sys::ze_command_list_handle_t;
pub type Queue = sys::ze_command_queue_handle_t;
pub type Event = sys::ze_event_handle_t;
/// The tests expect the specification's errors, and a device of type CPU behind the GPU, unless they set the variables otherwise.
pub const STRICT: &str = "ZEUSM_CPU_STRICT";
const DEVICES: &str = "ZEUSM_CPU_DEVICES";
pub const NONE: Event = ptr::null_mut();
pub const MIB: usize = 1 << 20;
pub const SECOND: u64 = 1_000_000_000;
pub const IN_ORDER_QUEUE: u32 = level_zero_sys::extensions::ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
pub const IN_ORDER_LIST: u32 = level_zero_sys::extensions::ZE_COMMAND_LIST_FLAG_IN_ORDER;

/// Types of IPC handles, and what the runtime answers to each.
pub const HANDLE_TYPES: [(u32, Result); 4] = [
    (0, OK),
    (extensions::ZE_IPC_MEM_HANDLE_TYPE_FLAG_DEFAULT, OK),
    (
        extensions::ZE_IPC_MEM_HANDLE_TYPE_FLAG_FABRIC_ACCESSIBLE,
        sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
    ),
    (1 << 20, sys::ZE_RESULT_ERROR_INVALID_ENUMERATION),
];

/// The structure that asks for handles of a type.
pub fn handle_type(flags: u32) -> extensions::ze_ipc_mem_handle_type_ext_desc_t {
    extensions::ze_ipc_mem_handle_type_ext_desc_t {
        stype: extensions::ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC,
        pNext: ptr::null(),
        typeFlags: flags,
    }
}

/// Whether the test calls the runtime without a loader.
pub fn direct() -> bool {
    match std::env::var("ZEUSM_TEST_MODE").as_deref() {
        Err(_) | Ok("direct") => true,
        Ok("loader" | "validated") => false,
        Ok(other) => panic!("ZEUSM_TEST_MODE={other}"),
    }
}

/// Whether flags of later specifications may be used: the validation layer of Debian 12 rejects them, as that of in-order lists.
pub fn knows_newer_flags() -> bool {
    !matches!(std::env::var("ZEUSM_TEST_MODE").as_deref(), Ok("validated"))
}

/// Flags of out-of-order and in-order queues.
pub fn queue_orders() -> &'static [u32] {
    if knows_newer_flags() {
        &[0, IN_ORDER_QUEUE]
    } else {
        &[0]
    }
}

/// Flags of out-of-order and in-order lists.
pub fn list_orders() -> &'static [u32] {
    if knows_newer_flags() {
        &[0, IN_ORDER_LIST]
    } else {
        &[0]
    }
}

/// The file of the library.
const LIBRARY: &str = if cfg!(windows) {
    "zeusm_cpu.dll"
} else {
    "libzeusm_cpu.so"
};

/// The library under test; cargo leaves it beside the test's executable.
pub fn library_path() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name(LIBRARY)
}

pub fn library() -> &'static sys::Library {
    static LIBRARY: OnceLock<&sys::Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        for (variable, value) in [(STRICT, "1"), (DEVICES, "1+cpu")] {
            if std::env::var_os(variable).is_none() {
                // SAFETY: Rust's threads read the environment under its lock, and no library has been opened.
                unsafe { std::env::set_var(variable, value) };
            }
        }
        let library = if direct() {
            unsafe { sys::load_from(library_path()) }.unwrap()
        } else {
            std::env::var_os("ZE_ENABLE_ALT_DRIVERS").expect("the loader's driver");
            sys::load().unwrap()
        };
        assert_eq!(unsafe { library.zeInit.unwrap()(0) }, OK);
        library
    })
}

/// Calls a function of the API by name.
macro_rules! ze {
    ($name:ident($($argument:expr),* $(,)?)) => {
        unsafe { $crate::common::library().$name.unwrap()($($argument),*) }
    };
}

/// Calls a function and expects success.
macro_rules! ok {
    ($name:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(ze!($name($($argument),*)), $crate::common::OK, stringify!($name))
    };
}

/// A function that is newer than the loader may be, by its name.
///
/// # Safety
/// `F` must be its type.
pub unsafe fn newer<F: Copy>(name: &std::ffi::CStr) -> F {
    let mut address = ptr::null_mut();
    ok!(zeDriverGetExtensionFunctionAddress(
        driver(),
        name.as_ptr(),
        &raw mut address
    ));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    unsafe { std::mem::transmute_copy(&address) }
}

/// An extension function, which the headers of Debian 12 do not declare; a loader may not have it.
pub fn extension<F: Copy>(name: &std::ffi::CStr) -> Option<F> {
    unsafe { library().symbol(name) }.ok()
}

pub fn driver() -> sys::ze_driver_handle_t {
    let (mut count, mut driver) = (1, ptr::null_mut());
    ok!(zeDriverGet(&raw mut count, &raw mut driver));
    driver
}

/// The first device.
pub fn device() -> sys::ze_device_handle_t {
    devices()[0]
}

/// The device of type GPU and the one of type CPU.
pub fn devices() -> [sys::ze_device_handle_t; 2] {
    let (mut count, mut devices) = (2, [ptr::null_mut(); 2]);
    ok!(zeDeviceGet(driver(), &raw mut count, devices.as_mut_ptr()));
    assert_eq!(count, 2);
    devices
}

pub fn device_desc() -> sys::ze_device_mem_alloc_desc_t {
    sys::ze_device_mem_alloc_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
        ..Default::default()
    }
}

pub fn host_desc() -> sys::ze_host_mem_alloc_desc_t {
    sys::ze_host_mem_alloc_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
        ..Default::default()
    }
}

pub fn queue_desc(flags: u32) -> sys::ze_command_queue_desc_t {
    sys::ze_command_queue_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
        mode: sys::ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
        flags,
        ..Default::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Host,
    Device,
    Shared,
}

impl Kind {
    /// The type that queries answer for its memory.
    pub fn memory_type(self) -> sys::ze_memory_type_t {
        match self {
            Self::Host => sys::ZE_MEMORY_TYPE_HOST,
            Self::Device => sys::ZE_MEMORY_TYPE_DEVICE,
            Self::Shared => sys::ZE_MEMORY_TYPE_SHARED,
        }
    }
}

pub const KINDS: [Kind; 3] = [Kind::Host, Kind::Device, Kind::Shared];

/// A context, destroyed with the value.
pub struct Context(pub sys::ze_context_handle_t);

unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Context {
    pub fn new() -> Self {
        let desc = sys::ze_context_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_CONTEXT_DESC,
            ..Default::default()
        };
        let mut context = ptr::null_mut();
        ok!(zeContextCreate(driver(), &raw const desc, &raw mut context));
        Self(context)
    }

    pub fn try_alloc(
        &self,
        kind: Kind,
        size: usize,
        alignment: usize,
    ) -> std::result::Result<Memory, Result> {
        let (device_desc, host_desc) = (device_desc(), host_desc());
        let mut pointer = ptr::null_mut();
        let result = match kind {
            Kind::Host => {
                ze!(zeMemAllocHost(
                    self.0,
                    &raw const host_desc,
                    size,
                    alignment,
                    &raw mut pointer
                ))
            }
            Kind::Device => ze!(zeMemAllocDevice(
                self.0,
                &raw const device_desc,
                size,
                alignment,
                device(),
                &raw mut pointer,
            )),
            Kind::Shared => ze!(zeMemAllocShared(
                self.0,
                &raw const device_desc,
                &raw const host_desc,
                size,
                alignment,
                device(),
                &raw mut pointer,
            )),
        };
        if result == OK {
            Ok(pointer)
        } else {
            Err(result)
        }
    }

    pub fn alloc(&self, kind: Kind, size: usize) -> Memory {
        self.try_alloc(kind, size, 0).unwrap()
    }

    pub fn free(&self, pointer: Memory) {
        ok!(zeMemFree(self.0, pointer));
    }

    pub fn immediate(&self, flags: u32) -> List {
        self.immediate_on(device(), &queue_desc(flags))
    }

    pub fn immediate_on(
        &self,
        device: sys::ze_device_handle_t,
        desc: &sys::ze_command_queue_desc_t,
    ) -> List {
        let mut list = ptr::null_mut();
        ok!(zeCommandListCreateImmediate(
            self.0,
            device,
            desc,
            &raw mut list
        ));
        list
    }

    pub fn list(&self, flags: u32) -> List {
        let desc = sys::ze_command_list_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
            flags,
            ..Default::default()
        };
        let mut list = ptr::null_mut();
        ok!(zeCommandListCreate(
            self.0,
            device(),
            &raw const desc,
            &raw mut list
        ));
        list
    }

    pub fn queue(&self) -> Queue {
        self.queue_of(&queue_desc(0))
    }

    pub fn queue_of(&self, desc: &sys::ze_command_queue_desc_t) -> Queue {
        let mut queue = ptr::null_mut();
        ok!(zeCommandQueueCreate(self.0, device(), desc, &raw mut queue));
        queue
    }

    pub fn pool(&self, count: u32, timed: bool) -> Pool {
        let mut flags = sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0;
        if timed {
            flags |= sys::ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP.0;
        }
        let desc = sys::ze_event_pool_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
            count,
            flags,
            ..Default::default()
        };
        let mut pool = ptr::null_mut();
        let mut device = device();
        ok!(zeEventPoolCreate(
            self.0,
            &raw const desc,
            1,
            &raw mut device,
            &raw mut pool
        ));
        let events = (0..count).map(|index| event(pool, index)).collect();
        Pool { pool, events }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        ok!(zeContextDestroy(self.0));
    }
}

fn event(pool: sys::ze_event_pool_handle_t, index: u32) -> Event {
    let desc = sys::ze_event_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
        index,
        signal: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
        wait: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
        ..Default::default()
    };
    let mut event = ptr::null_mut();
    ok!(zeEventCreate(pool, &raw const desc, &raw mut event));
    event
}

/// A pool and all its events.
pub struct Pool {
    pub pool: sys::ze_event_pool_handle_t,
    pub events: Vec<Event>,
}

unsafe impl Send for Pool {}
unsafe impl Sync for Pool {}

impl Drop for Pool {
    fn drop(&mut self) {
        for event in &self.events {
            ok!(zeEventDestroy(*event));
        }
        ok!(zeEventPoolDestroy(self.pool));
    }
}

pub fn destroy(list: List) {
    ok!(zeCommandListDestroy(list));
}

/// Appends a copy that signals `signal` after `waits`.
pub fn copy(
    list: List,
    to: Memory,
    from: *const c_void,
    size: usize,
    signal: Event,
    waits: &[Event],
) {
    ok!(zeCommandListAppendMemoryCopy(
        list,
        to,
        from,
        size,
        signal,
        waits.len() as u32,
        array(waits),
    ));
}

/// Appends a fill that signals `signal` after `waits`.
pub fn fill(list: List, to: Memory, pattern: &[u8], size: usize, signal: Event, waits: &[Event]) {
    ok!(zeCommandListAppendMemoryFill(
        list,
        to,
        pattern.as_ptr().cast(),
        pattern.len(),
        size,
        signal,
        waits.len() as u32,
        array(waits),
    ));
}

/// An array of events as the API takes it.
pub fn array(events: &[Event]) -> *mut Event {
    if events.is_empty() {
        ptr::null_mut()
    } else {
        events.as_ptr().cast_mut()
    }
}

/// Waits for all commands of an immediate list.
pub fn finish(context: &Context, list: List) {
    let pool = context.pool(1, false);
    ok!(zeCommandListAppendBarrier(
        list,
        pool.events[0],
        0,
        ptr::null_mut()
    ));
    wait(pool.events[0]);
}

pub fn wait(event: Event) {
    ok!(zeEventHostSynchronize(event, 60 * SECOND));
}

pub fn is_set(event: Event) -> bool {
    match ze!(zeEventQueryStatus(event)) {
        OK => true,
        sys::ZE_RESULT_NOT_READY => false,
        other => panic!("{:?}", other.name()),
    }
}

pub fn bytes<'a>(memory: Memory, size: usize) -> &'a [u8] {
    unsafe { std::slice::from_raw_parts(memory.cast(), size) }
}

pub fn bytes_mut<'a>(memory: Memory, size: usize) -> &'a mut [u8] {
    unsafe { std::slice::from_raw_parts_mut(memory.cast(), size) }
}

/// Bytes that are different everywhere and the same in every run.
pub fn pattern(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..size)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

/// A value of `/proc/self/status` in bytes.
pub fn status(field: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap();
    line.trim_start_matches(':')
        .trim()
        .trim_end_matches(" kB")
        .parse::<usize>()
        .unwrap()
        << 10
}

/// The base and the size of the allocation that `pointer` points into.
pub fn range(
    context: &Context,
    pointer: *const c_void,
) -> std::result::Result<(usize, usize), Result> {
    let (mut base, mut size) = (ptr::null_mut(), 0);
    match ze!(zeMemGetAddressRange(
        context.0,
        pointer,
        &raw mut base,
        &raw mut size
    )) {
        OK => Ok((base as usize, size)),
        error => Err(error),
    }
}

/// How much memory the device has, in bytes.
pub fn total() -> usize {
    let mut out = sys::ze_device_memory_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES,
        ..Default::default()
    };
    let mut count = 1;
    ok!(zeDeviceGetMemoryProperties(
        device(),
        &raw mut count,
        &raw mut out
    ));
    out.totalSize as usize
}

/// What the device says of the import and export of memory.
pub fn external_memory() -> sys::ze_device_external_memory_properties_t {
    let mut properties = sys::ze_device_external_memory_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES,
        ..Default::default()
    };
    ok!(zeDeviceGetExternalMemoryProperties(
        device(),
        &raw mut properties
    ));
    properties
}
