//! IPC: opening memory in another process, invalid handles, and leaks.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]

#[macro_use]
mod common;
#[path = "../../tests/support/contents.rs"]
mod contents;
#[path = "common/process.rs"]
mod process;

use std::ffi::{c_char, c_void};
use std::os::fd::AsRawFd;
use std::ptr;

use common::{OK, newer};
use level_zero_sys as sys;
use level_zero_sys::extensions;

type Code = sys::ze_result_t;
type Handle = sys::ze_ipc_mem_handle_t;
type Context = sys::ze_context_handle_t;
type Put = unsafe extern "C" fn(Context, Handle) -> Code;
type ToDescriptor = unsafe extern "C" fn(Context, Handle, *mut u64) -> Code;
type FromDescriptor = unsafe extern "C" fn(Context, u64, *mut Handle) -> Code;

const INVALID: Code = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
const NOT_FOUND: Code = extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND;
const SIZES: [usize; 5] = [1, 64, 5000, 300_000, 9 << 20];
const HOST: sys::ze_memory_type_t = sys::ZE_MEMORY_TYPE_HOST;
const DEVICE: sys::ze_memory_type_t = sys::ZE_MEMORY_TYPE_DEVICE;
const SHARED: sys::ze_memory_type_t = sys::ZE_MEMORY_TYPE_SHARED;

struct Client {
    driver: sys::ze_driver_handle_t,
    device: sys::ze_device_handle_t,
    context: Context,
}

// SAFETY: the handles may be used from any thread.
unsafe impl Sync for Client {}

impl Client {
    fn new() -> Self {
        let (mut count, mut driver, mut device) = (1, ptr::null_mut(), ptr::null_mut());
        assert_eq!(ze!(zeDriverGet(&mut count, &mut driver)), OK);
        assert_eq!(ze!(zeDeviceGet(driver, &mut count, &mut device)), OK);
        let desc = sys::ze_context_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_CONTEXT_DESC,
            ..Default::default()
        };
        let mut context = ptr::null_mut();
        assert_eq!(ze!(zeContextCreate(driver, &desc, &mut context)), OK);
        Self {
            driver,
            device,
            context,
        }
    }

    fn allocate(&self, kind: sys::ze_memory_type_t, size: usize) -> *mut c_void {
        let dev = &sys::ze_device_mem_alloc_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
            ..Default::default()
        };
        let host = &sys::ze_host_mem_alloc_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
            ..Default::default()
        };
        let (context, device, mut it) = (self.context, self.device, ptr::null_mut());
        let code = match kind {
            HOST => ze!(zeMemAllocHost(context, host, size, 0, &mut it)),
            DEVICE => ze!(zeMemAllocDevice(context, dev, size, 0, device, &mut it)),
            _ => ze!(zeMemAllocShared(
                context, dev, host, size, 0, device, &mut it
            )),
        };
        assert_eq!(code, OK);
        it
    }

    fn free(&self, pointer: *mut c_void) {
        assert_eq!(ze!(zeMemFree(self.context, pointer)), OK);
    }

    fn export(&self, pointer: *const c_void) -> Result<Handle, Code> {
        let mut handle = Handle::default();
        match ze!(zeMemGetIpcHandle(self.context, pointer, &mut handle)) {
            OK => Ok(handle),
            error => Err(error),
        }
    }

    fn open(&self, handle: Handle) -> Result<*mut c_void, Code> {
        let (context, device, mut it) = (self.context, self.device, ptr::null_mut());
        match ze!(zeMemOpenIpcHandle(context, device, handle, 0, &mut it)) {
            OK => Ok(it),
            error => Err(error),
        }
    }

    fn close(&self, pointer: *const c_void) -> Code {
        ze!(zeMemCloseIpcHandle(self.context, pointer))
    }

    /// The kind, base and size that the runtime reports.
    fn describe(&self, pointer: *mut c_void) -> (sys::ze_memory_type_t, *mut c_void, usize) {
        let mut out = sys::ze_memory_allocation_properties_t {
            stype: sys::ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
            ..Default::default()
        };
        let (context, none) = (self.context, ptr::null_mut());
        let (mut base, mut size) = (ptr::null_mut(), 0);
        let kind = ze!(zeMemGetAllocProperties(context, pointer, &mut out, none));
        let range = ze!(zeMemGetAddressRange(context, pointer, &mut base, &mut size));
        assert_eq!((kind, range), (OK, OK));
        (out.type_, base, size)
    }
}

fn bytes<'a>(pointer: *mut c_void, size: usize) -> &'a mut [u8] {
    unsafe { std::slice::from_raw_parts_mut(pointer.cast(), size) }
}

/// `size` bytes of a pattern, each plus `more`.
fn pattern(size: usize, more: u8) -> Vec<u8> {
    let byte = |index| ((index * 31 + index / 977) as u8).wrapping_add(more);
    (0..size).map(byte).collect()
}

fn descriptor(handle: &Handle) -> i32 {
    i32::from_le_bytes(std::array::from_fn(|index| handle.data[index] as u8))
}

fn with_descriptor(mut handle: Handle, descriptor: i32) -> Handle {
    for (place, byte) in handle.data.iter_mut().zip(descriptor.to_le_bytes()) {
        *place = byte as _;
    }
    handle
}

fn hex(handle: &Handle) -> String {
    let digits = |byte: &c_char| format!("{:02x}", *byte as u8);
    handle.data.iter().map(digits).collect()
}

fn unhex(text: &str) -> Handle {
    let mut handle = Handle::default();
    for (index, place) in handle.data.iter_mut().enumerate() {
        *place = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap() as _;
    }
    handle
}

fn elsewhere(task: &str, handle: &Handle, size: usize) -> String {
    let task = format!("{task} {} {size}", hex(handle));
    process::alone_with("another_process", &[("ZEUSM_TEST_IPC", &task)])
}

#[test]
#[ignore = "the other side of the other tests, which run it"]
fn another_process() {
    let task = std::env::var("ZEUSM_TEST_IPC").unwrap();
    let [task, handle, size] = task.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{task}");
    };
    let (handle, size, client) = (unhex(handle), size.parse().unwrap(), Client::new());
    match task {
        "increment" => {
            let pointer = client.open(handle).unwrap();
            let (_, base, found) = client.describe(pointer);
            assert_eq!((base, found), (pointer, size));
            contents::check(bytes(pointer, size), &pattern(size, 0));
            bytes(pointer, size).copy_from_slice(&pattern(size, 1));
            assert_eq!(client.close(pointer), OK);
        }
        "refuse" => check_refused(client.open(handle)),
        "export" => {
            let pointer = client.allocate(SHARED, size);
            println!("handle={}", hex(&client.export(pointer).unwrap()));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn another_process_sees_and_changes_memory_of_any_kind_and_size() {
    let client = Client::new();
    for kind in [HOST, DEVICE, SHARED] {
        for size in SIZES {
            let pointer = client.allocate(kind, size);
            bytes(pointer, size).copy_from_slice(&pattern(size, 0));
            elsewhere("increment", &client.export(pointer).unwrap(), size);
            contents::check(bytes(pointer, size), &pattern(size, 1));
            client.free(pointer);
        }
    }
}

#[test]
fn each_opening_is_a_pointer_of_its_own_and_keeps_the_memory() {
    let client = Client::new();
    for size in SIZES {
        let pointer = client.allocate(HOST, size);
        let handle = client.export(pointer).unwrap();
        assert_eq!(handle.data, client.export(pointer).unwrap().data);
        let (first, second) = (client.open(handle).unwrap(), client.open(handle).unwrap());
        assert!(first != second && first != pointer);
        assert_eq!(client.describe(first), (HOST, first, size));
        bytes(pointer, size)[size - 1] = 77;
        assert_eq!(bytes(first, size)[size - 1], 77);
        // An opened pointer is closed, not freed, and cannot be passed on.
        assert_eq!(ze!(zeMemFree(client.context, first)), INVALID);
        assert_eq!(client.export(first).err(), Some(INVALID));
        assert_eq!(Client::new().close(first), INVALID, "another context");
        assert_eq!(client.close(first.wrapping_byte_add(1)), INVALID, "inside");
        assert_eq!(client.close(first), OK);
        assert_eq!(client.close(first), INVALID);
        assert_eq!(client.close(pointer), INVALID);
        client.free(pointer);
        assert_eq!(bytes(second, size)[size - 1], 77);
        assert_eq!(client.close(second), OK);
    }
}

#[test]
fn copies_run_from_and_to_opened_memory() {
    let (client, size) = (Client::new(), 3 << 20);
    let pointer = client.allocate(DEVICE, size);
    bytes(pointer, size).fill(9);
    let opened = client.open(client.export(pointer).unwrap()).unwrap();
    let desc = sys::ze_command_queue_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
        mode: sys::ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
        ..Default::default()
    };
    let (context, device, mut list) = (client.context, client.device, ptr::null_mut());
    let made = ze!(zeCommandListCreateImmediate(
        context, device, &desc, &mut list
    ));
    assert_eq!(made, OK);
    let copy = |to: *mut c_void, from: *const c_void, size| {
        let (no_event, no_events) = (ptr::null_mut(), ptr::null_mut());
        ze!(zeCommandListAppendMemoryCopy(
            list, to, from, size, no_event, 0, no_events
        ))
    };
    let mut host = vec![0u8; size + 1];
    assert_eq!(copy(host.as_mut_ptr().cast(), opened, size), OK);
    contents::check(&host[..size], &vec![9; size]);
    host.fill(4);
    assert_eq!(copy(opened, host.as_ptr().cast(), size), OK);
    contents::check(bytes(pointer, size), &vec![4; size]);
    // The extent is the allocation's, not the mapping's.
    assert_ne!(copy(opened, host.as_ptr().cast(), size + 1), OK);
    assert_eq!(ze!(zeCommandListDestroy(list)), OK);
    assert_eq!(client.close(opened), OK);
    client.free(pointer);
}

/// Small allocations share a block, which moves to a file while other threads write to it.
#[test]
fn an_export_keeps_what_other_threads_write_to_the_block() {
    let client = &Client::new();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            scope.spawn(move || {
                for round in 0..60u32 {
                    let size = SIZES[(round as usize + usize::from(thread)) % SIZES.len()];
                    let value = (round as u8).wrapping_mul(5) ^ (thread << 6) | 1;
                    let pointer = client.allocate(SHARED, size);
                    bytes(pointer, size).fill(value);
                    if round % 3 == 0 {
                        // Not exported: another thread moves its block, if any does.
                        std::thread::yield_now();
                        contents::check(bytes(pointer, size), &vec![value; size]);
                    } else {
                        let opened = client.open(client.export(pointer).unwrap()).unwrap();
                        contents::check(bytes(pointer, size), &vec![value; size]);
                        contents::check(bytes(opened, size), &vec![value; size]);
                        assert_eq!(client.close(opened), OK);
                    }
                    client.free(pointer);
                }
            });
        }
    });
}

/// Checks the result of opening a handle of freed memory, whose number is no longer a descriptor of that allocation; another
/// test may have got it for the same block's file.
fn check_refused(result: Result<*mut c_void, Code>) {
    assert!(
        [Err(INVALID), Err(NOT_FOUND)].contains(&result),
        "{result:?}"
    );
}

#[test]
fn freed_memory_cannot_be_opened() {
    let client = Client::new();
    for size in [64, 9 << 20] {
        let pointer = client.allocate(SHARED, size);
        // It may be in the block of the first one, and then keeps the block alive.
        let neighbour = client.allocate(SHARED, 64);
        let handle = client.export(pointer).unwrap();
        let kept = unsafe { libc::dup(descriptor(&handle)) };
        client.free(pointer);
        check_refused(client.open(handle));
        elsewhere("refuse", &handle, size);
        // With another descriptor, the file's record tells that the allocation was freed.
        assert_eq!(client.open(with_descriptor(handle, kept)), Err(NOT_FOUND));
        assert_eq!(unsafe { libc::close(kept) }, 0);
        client.free(neighbour);
    }
}

#[test]
fn memory_of_a_process_that_is_gone_cannot_be_opened() {
    let output = elsewhere("export", &Handle::default(), 4096);
    let handle = output.split("handle=").nth(1).unwrap();
    assert_eq!(Client::new().open(unhex(handle)), Err(INVALID));
}

#[test]
fn a_descriptor_alone_is_enough() {
    let client = Client::new();
    let to: ToDescriptor = unsafe { newer(c"zeMemGetFileDescriptorFromIpcHandleExp") };
    let from: FromDescriptor = unsafe { newer(c"zeMemGetIpcHandleFromFileDescriptorExp") };
    let put: Put = unsafe { newer(c"zeMemPutIpcHandle") };
    let pointers = SIZES.map(|size| (size, client.allocate(DEVICE, size)));
    for (size, pointer) in pointers {
        bytes(pointer, size).fill(size as u8 | 1);
        let (handle, mut number) = (client.export(pointer).unwrap(), 0);
        assert_eq!(unsafe { to(client.context, handle, &mut number) }, OK);
        let moved = unsafe { libc::dup(number as i32) };
        let mut made = Handle::default();
        let code = unsafe { from(client.context, moved as u64, &mut made) };
        assert_eq!(code, OK);
        assert_eq!(unsafe { put(client.context, handle) }, OK);
        let opened = client.open(made).unwrap();
        assert_eq!(unsafe { libc::close(moved) }, 0);
        assert_eq!(client.describe(opened), (DEVICE, opened, size));
        let expected = vec![size as u8 | 1; size];
        contents::check(bytes(pointer, size), &expected);
        contents::check(bytes(opened, size), &expected);
        assert_eq!(client.close(opened), OK);
    }
    let null = std::fs::File::open("/dev/null").unwrap();
    for number in [null.as_raw_fd() as u64, 99_999, u64::MAX] {
        let code = unsafe { from(client.context, number, &mut Handle::default()) };
        assert_eq!(code, INVALID);
    }
    pointers
        .iter()
        .for_each(|(_, pointer)| client.free(*pointer));
}

#[test]
fn invalid_ipc_handles_are_refused() {
    let client = Client::new();
    let pointer = client.allocate(SHARED, 4096);
    let inside = unsafe { pointer.byte_add(1) };
    let local = 0u64;
    for wrong in [inside.cast_const(), (&raw const local).cast()] {
        assert_eq!(client.export(wrong).err(), Some(INVALID));
    }
    assert_eq!(Client::new().export(pointer).err(), Some(INVALID));
    let handle = client.export(pointer).unwrap();
    for (index, bit) in (4..64).flat_map(|index| (0..8).map(move |bit| (index, bit))) {
        let mut damaged = handle;
        damaged.data[index] ^= (1u8 << bit) as c_char;
        // The process number does not matter if the descriptor refers to the file, as after a program has passed it on.
        let harmless = (4..8).contains(&index);
        match client.open(damaged) {
            Ok(opened) if harmless => assert_eq!(client.close(opened), OK),
            answer => assert!(!harmless && answer.is_err(), "byte {index} bit {bit}"),
        }
    }
    assert_eq!(client.open(Handle::default()), Err(INVALID));
    client.free(pointer);
}

/// The 64 bytes of a handle as five numbers, the first of which is a descriptor and a process.
fn forge(handle: Handle, field: usize, value: u64) -> Handle {
    let mut forged = handle;
    let bytes = value.to_le_bytes().map(|byte| byte as c_char);
    forged.data[8 * field..][..8].copy_from_slice(&bytes);
    forged
}

#[test]
fn a_forged_handle_leads_to_no_other_memory() {
    let client = Client::new();
    let size = 4096;
    let pointer = client.allocate(SHARED, size);
    let handle = client.export(pointer).unwrap();
    // A record that describes more, in memory that the program may write to. No other test exports its ids.
    let own = u64::from_le_bytes(std::array::from_fn(|index| handle.data[24 + index] as u8));
    for (id, offset, length) in [(own, 0, 2 << 20), (u64::MAX, 64, 1 << 40)] {
        let tail = u64::from(SHARED.0) | 0x7a75_736d << 32;
        let record = [id, offset, length, tail].map(u64::to_le_bytes);
        bytes(pointer, size)[..32].copy_from_slice(record.as_flattened());
        for place in (1..2000).chain([u64::MAX, 1 << 31, 1 << 31 | 1, 1 << 63]) {
            let answer = client.open(forge(forge(handle, 2, place), 3, id));
            assert_eq!(answer, Err(INVALID), "{place}");
        }
        match client.open(forge(handle, 3, id)) {
            Ok(opened) => {
                // The exporter's own record: never more than the allocation.
                assert_eq!((id, client.describe(opened).2), (own, size));
                assert_eq!(client.close(opened), OK);
            }
            Err(error) => assert_eq!((id, error), (u64::MAX, NOT_FOUND)),
        }
    }
    // Another program's memory file that differs from ours only by its name.
    let name = c"wl_shm".as_ptr();
    let foreign = unsafe { libc::memfd_create(name, libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let record = [5u64, 0, 4096, u64::from(SHARED.0) | 0x7a75_736d << 32].map(u64::to_le_bytes);
    let record = record.as_flattened();
    unsafe {
        assert_eq!(libc::ftruncate(foreign, 4096 + 32), 0);
        assert_eq!(libc::pwrite(foreign, record.as_ptr().cast(), 32, 4096), 32);
        assert_eq!(libc::fcntl(foreign, libc::F_ADD_SEALS, seals), 0);
    }
    let inode = std::fs::metadata(format!("/proc/self/fd/{foreign}")).unwrap();
    let inode = std::os::unix::fs::MetadataExt::ino(&inode);
    let head = u64::from(foreign as u32) | u64::from(std::process::id()) << 32;
    let mut forged = handle;
    for (field, value) in [(0, head), (1, inode), (2, 0), (3, 5)] {
        forged = forge(forged, field, value);
    }
    assert_eq!(client.open(forged), Err(INVALID));
    assert_eq!(client.open(bare(foreign)), Err(INVALID));
    assert_eq!(unsafe { libc::close(foreign) }, 0);
    client.free(pointer);
}

/// A handle that holds nothing but a descriptor, as oneCCL makes them.
fn bare(descriptor: i32) -> Handle {
    with_descriptor(Handle::default(), descriptor)
}

#[test]
fn a_handle_that_holds_only_a_descriptor_opens() {
    let client = Client::new();
    for size in SIZES {
        let pointer = client.allocate(DEVICE, size);
        bytes(pointer, size).fill(size as u8 | 1);
        let moved = unsafe { libc::dup(descriptor(&client.export(pointer).unwrap())) };
        let opened = client.open(bare(moved)).unwrap();
        assert_eq!(client.describe(opened), (DEVICE, opened, size));
        contents::check(bytes(opened, size), &vec![size as u8 | 1; size]);
        assert_eq!(client.close(opened), OK);
        client.free(pointer);
        assert_eq!(client.open(bare(moved)), Err(NOT_FOUND));
        assert_eq!(unsafe { libc::close(moved) }, 0);
    }
    let null = std::fs::File::open("/dev/null").unwrap();
    for number in [null.as_raw_fd(), 99_999, -1, i32::MAX] {
        assert_eq!(client.open(bare(number)), Err(INVALID));
    }
}

/// Intel MPI maps it itself.
#[test]
fn the_descriptor_shows_the_allocation_from_its_beginning_and_no_other() {
    let client = Client::new();
    for size in SIZES {
        let all = [(); 5].map(|()| client.allocate(HOST, size));
        for (index, pointer) in all.iter().enumerate() {
            bytes(*pointer, size).fill(index as u8 + 1);
        }
        let handles = all.map(|pointer| client.export(pointer).unwrap());
        for (index, handle) in handles.iter().enumerate() {
            let shown = std::fs::read(format!("/proc/self/fd/{}", descriptor(handle))).unwrap();
            let value = index as u8 + 1;
            contents::check(&shown[..size], &vec![value; size]);
            // Behind it are zeros, and the record.
            let (rest, _record) = shown[size..].split_at(shown.len() - size - 32);
            assert!(rest.iter().all(|byte| *byte == 0));
        }
        all.iter().for_each(|pointer| client.free(*pointer));
    }
}

#[test]
#[ignore = "counts the descriptors of its process: the next one runs it"]
fn export_many() {
    let client = Client::new();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let all: Vec<_> = (0..3000).map(|_| client.allocate(DEVICE, 64)).collect();
    let before = descriptors();
    for pointer in &all[..100] {
        assert_eq!(
            client.export(*pointer).unwrap().data,
            client.export(*pointer).unwrap().data
        );
    }
    assert_eq!(
        descriptors(),
        before + 100,
        "one for each exported allocation"
    );
    all.iter().for_each(|pointer| client.free(*pointer));
    assert_eq!(descriptors(), before);
}

#[test]
fn each_exported_allocation_has_one_descriptor() {
    process::alone("export_many");
}

#[test]
fn the_driver_reports_ipc_support() {
    let mut out = sys::ze_driver_ipc_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES,
        ..Default::default()
    };
    let driver = Client::new().driver;
    assert_eq!(ze!(zeDriverGetIpcProperties(driver, &mut out)), OK);
    let all = sys::ZE_IPC_PROPERTY_FLAG_MEMORY.0 | sys::ZE_IPC_PROPERTY_FLAG_EVENT_POOL.0;
    assert_eq!(out.flags, all);
}

#[test]
#[ignore = "counts the descriptors of its process: the next one runs it"]
fn open_and_close_many_times() {
    let client = Client::new();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let pointer = client.allocate(SHARED, 5000);
    let handle = client.export(pointer).unwrap();
    let before = descriptors();
    for round in 0..10_000 {
        assert_eq!(client.close(client.open(handle).unwrap()), OK);
        if round % 50 == 0 {
            let size = if round % 100 == 0 { 300_000 } else { 64 };
            let other = client.allocate(SHARED, size);
            let opened = client.open(client.export(other).unwrap()).unwrap();
            assert_eq!(client.close(opened), OK);
            client.free(other);
        }
    }
    assert_eq!(descriptors(), before);
    client.free(pointer);
}

#[test]
fn no_descriptor_leaks() {
    process::alone("open_and_close_many_times");
}
