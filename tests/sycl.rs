//! The SYCL layer with a real SYCL runtime: dpctl's library is opened as by `import dpctl`, over the Level Zero runtime of
//! zeusm, and with an OpenCL CPU device as one of another backend.
//!
//! `ZEUSM_TEST_DPCTL` names the folder of the package dpctl (`.../site-packages/dpctl`). Without it there is no SYCL runtime
//! to test, and each test reports that.
#![allow(clippy::unwrap_used)]

use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::ptr;
use std::sync::LazyLock;
use std::thread;

use zeusm::sycl::{Backend, ContextRef, DeviceRef, Error, EventRef, Library, QueueRef, RawRef};
use zeusm::{Runtime, sys};

const VARIABLE: &str = "ZEUSM_TEST_DPCTL";
/// dpctl's library.
const INTERFACE: &str = if cfg!(windows) {
    "DPCTLSyclInterface.dll"
} else {
    "libDPCTLSyclInterface.so"
};
/// The OpenCL runtime of its environment, from its folder.
const OPENCL_RUNTIME: &str = "../../../libintelocl.so";
const LEVEL_ZERO: &str = "level_zero:gpu:0";
/// The CPU runtime's other device, on request.
const LEVEL_ZERO_CPU: &str = "level_zero:cpu:0";
#[cfg(not(windows))]
const OPENCL: &str = "opencl:cpu:0";

/// The folder of dpctl, once its library is in the process; `None` where the variable is not set.
static DPCTL: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let folder = PathBuf::from(env::var_os(VARIABLE)?);
    assert!(
        matches!(Library::get(), Err(Error::NoDpctl { .. })),
        "the lookup must not load anything"
    );
    // The OpenCL runtime of dpctl's environment, for either kind of OpenCL loader.
    let opencl = folder.join(OPENCL_RUNTIME);
    for variable in ["OCL_ICD_VENDORS", "OCL_ICD_FILENAMES"] {
        // SAFETY: the tests wait for this block first.
        unsafe { env::set_var(variable, &opencl) };
    }
    // SAFETY: as above.
    unsafe { env::set_var("ZEUSM_CPU_DEVICES", "1+cpu") };
    Runtime::get().unwrap();
    let library = folder.join(INTERFACE);
    // SAFETY: the library is that of the dpctl under test, opened as the dynamic linker does for Python.
    let library = unsafe { libloading::Library::new(&library) }.unwrap();
    std::mem::forget(library);
    Some(folder)
});

/// Returns from the test with a message when there is no SYCL runtime.
macro_rules! need_sycl {
    () => {
        match DPCTL.as_ref() {
            Some(folder) => folder,
            None => {
                eprintln!("skipped: {VARIABLE} names no folder of dpctl");
                return;
            }
        }
    };
}

/// Functions of dpctl with which a program makes the objects that zeusm gets references to.
struct Functions {
    selector: unsafe extern "C" fn(*const c_char) -> RawRef,
    selector_delete: unsafe extern "C" fn(RawRef),
    device: unsafe extern "C" fn(RawRef) -> RawRef,
    device_delete: unsafe extern "C" fn(RawRef),
    device_name: unsafe extern "C" fn(RawRef) -> *const c_char,
    string_delete: unsafe extern "C" fn(*const c_char),
    context: unsafe extern "C" fn(RawRef) -> RawRef,
    context_delete: unsafe extern "C" fn(RawRef),
    queue: unsafe extern "C" fn(RawRef, RawRef, RawRef, c_int) -> RawRef,
    queue_delete: unsafe extern "C" fn(RawRef),
    pointer_type: unsafe extern "C" fn(RawRef, RawRef) -> c_uint,
}

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let path = DPCTL.as_ref().unwrap().join(INTERFACE);
    // SAFETY: the library is in the process; the types are those of dpctl's headers.
    unsafe {
        let library = libloading::Library::new(path).unwrap();
        let found = Functions {
            selector: *library.get("DPCTLFilterSelector_Create").unwrap(),
            selector_delete: *library.get("DPCTLDeviceSelector_Delete").unwrap(),
            device: *library.get("DPCTLDevice_CreateFromSelector").unwrap(),
            device_delete: *library.get("DPCTLDevice_Delete").unwrap(),
            device_name: *library.get("DPCTLDevice_GetName").unwrap(),
            string_delete: *library.get("DPCTLCString_Delete").unwrap(),
            context: *library.get("DPCTLDeviceMgr_GetCachedContext").unwrap(),
            context_delete: *library.get("DPCTLContext_Delete").unwrap(),
            queue: *library.get("DPCTLQueue_Create").unwrap(),
            queue_delete: *library.get("DPCTLQueue_Delete").unwrap(),
            pointer_type: *library.get("DPCTLUSM_GetPointerType").unwrap(),
        };
        std::mem::forget(library);
        found
    }
});

/// The device that a filter string selects.
fn device(filter: &str) -> DeviceRef {
    let text = CString::new(filter).unwrap();
    // SAFETY: the string outlives the call, and the selector and the device are deleted once.
    unsafe {
        let selector = (FUNCTIONS.selector)(text.as_ptr());
        let raw = (FUNCTIONS.device)(selector);
        (FUNCTIONS.selector_delete)(selector);
        let device = DeviceRef::copy_from_raw(raw).unwrap();
        (FUNCTIONS.device_delete)(raw);
        device
    }
}

/// The context of dpctl's default queues for the device.
fn default_context(device: &DeviceRef) -> ContextRef {
    // SAFETY: the device is alive, and the context is deleted once.
    unsafe {
        let raw = (FUNCTIONS.context)(device.as_raw());
        let context = ContextRef::copy_from_raw(raw).unwrap();
        (FUNCTIONS.context_delete)(raw);
        context
    }
}

/// A queue with default properties; an error where SYCL makes none.
fn new_queue(context: &ContextRef, device: &DeviceRef) -> Result<QueueRef, Error> {
    // SAFETY: context and device are alive, and the queue is deleted once.
    unsafe {
        let raw = (FUNCTIONS.queue)(context.as_raw(), device.as_raw(), ptr::null_mut(), 0);
        let queue = QueueRef::copy_from_raw(raw)?;
        (FUNCTIONS.queue_delete)(raw);
        Ok(queue)
    }
}

/// The devices' filter strings. The packages of SYCL for Windows have no adapter for OpenCL.
const DEVICES: &[(&str, Backend)] = &[
    (LEVEL_ZERO, Backend::LevelZero),
    (LEVEL_ZERO_CPU, Backend::LevelZero),
    #[cfg(not(windows))]
    (OPENCL, Backend::OpenCl),
];

fn devices() -> impl Iterator<Item = DeviceRef> {
    DEVICES.iter().map(|(filter, _)| device(filter))
}

#[test]
fn the_library_is_the_one_in_the_process() {
    need_sycl!();
    let library = Library::get().unwrap();
    let sycl = library.sycl_path().file_name().unwrap().to_str().unwrap();
    assert!(
        ["libsycl.so.9", "libsycl.so.7", "sycl9.dll"].contains(&sycl),
        "{sycl}"
    );
    assert!(ptr::eq(library, Library::get().unwrap()));
}

#[test]
fn a_device_has_the_backend_of_its_filter_string() {
    need_sycl!();
    for (filter, backend) in DEVICES {
        assert_eq!(device(filter).backend(), *backend);
        assert_eq!(device(filter) == device(LEVEL_ZERO), *filter == LEVEL_ZERO);
    }
    assert_eq!(device("level_zero"), device(LEVEL_ZERO));
}

#[test]
fn copied_references_are_equal() {
    need_sycl!();
    let context = default_context(&device(LEVEL_ZERO));
    let clone = context.clone();
    // SAFETY: the reference is alive.
    let copy = unsafe { ContextRef::copy_from_raw(context.as_raw()) }.unwrap();
    assert_ne!(copy.as_raw(), context.as_raw());
    // SAFETY: the reference is alive.
    assert!(unsafe { context.is_same(copy.as_raw()) });
    let (raw, capsule_context) = (context.as_raw(), context.into_capsule_context());
    // SAFETY: the capsule's context keeps the reference alive.
    assert!(unsafe { copy.is_same(raw) });
    // SAFETY: the capsule's context is of this class, and released once.
    unsafe { ContextRef::release(capsule_context) };
    assert_eq!(clone, copy);
    drop(clone);
    assert_eq!(copy.backend(), Backend::LevelZero);
    assert!(format!("{copy:?}").contains("level_zero"));
    assert_eq!(ContextRef::CAPSULE, c"SyclContextRef");
    assert_eq!(QueueRef::USED_CAPSULE, c"used_SyclQueueRef");
    assert_eq!(EventRef::CAPSULE, c"SyclEventRef");
}

#[test]
fn null_references_are_refused() {
    need_sycl!();
    let null = |object| Error::NullReference(object);
    // SAFETY: null is allowed.
    unsafe {
        assert_eq!(
            ContextRef::copy_from_raw(ptr::null_mut()),
            Err(null("SYCL context"))
        );
        assert_eq!(
            DeviceRef::copy_from_raw(ptr::null_mut()),
            Err(null("SYCL device"))
        );
        assert_eq!(
            QueueRef::copy_from_raw(ptr::null_mut()),
            Err(null("SYCL queue"))
        );
    }
}

#[test]
fn a_device_has_one_default_context_for_all_its_queues() {
    need_sycl!();
    for device in devices() {
        let context = default_context(&device);
        assert_eq!(context, default_context(&device));
        assert!(context.devices().unwrap().contains(&device));
        let queue = new_queue(&context, &device).unwrap();
        assert_eq!(queue.context().unwrap(), context);
        assert_eq!(queue.device().unwrap(), device);
        assert_eq!(queue.backend(), device.backend());
        assert!(!queue.is_in_order());
        assert_eq!(queue, queue.clone());
        assert_ne!(queue, new_queue(&context, &device).unwrap());
    }
    // The context is the platform's, which has both devices.
    let context = default_context(&device(LEVEL_ZERO));
    assert_eq!(context, default_context(&device(LEVEL_ZERO_CPU)));
}

#[cfg(not(windows))] // As `DEVICES`.
#[test]
fn devices_of_other_platforms_have_other_contexts() {
    need_sycl!();
    let (context, opencl) = (default_context(&device(LEVEL_ZERO)), device(OPENCL));
    assert_ne!(context, default_context(&opencl));
    assert_eq!(
        new_queue(&context, &opencl),
        Err(Error::NullReference("SYCL queue"))
    );
}

#[test]
fn a_barrier_is_complete_after_a_wait() {
    need_sycl!();
    for device in devices() {
        let queue = new_queue(&default_context(&device), &device).unwrap();
        let event = queue.barrier().unwrap();
        assert_eq!(event.backend(), device.backend());
        event.wait().unwrap();
        assert!(event.is_complete());
        // SAFETY: the reference is alive.
        let copy = unsafe { EventRef::copy_from_raw(event.as_raw()) }.unwrap();
        drop((queue, event));
        assert!(copy.is_complete());
    }
}

#[test]
fn native_handles_are_those_of_level_zero() {
    need_sycl!();
    let device = device(LEVEL_ZERO);
    let context = default_context(&device);
    let handle = context.native().unwrap();
    assert!(!handle.is_null());
    assert_eq!(context.clone().native().unwrap(), handle);
    // SAFETY: the device is alive; the string ends with NUL, and is deleted once after the copy.
    let name = unsafe {
        let name = (FUNCTIONS.device_name)(device.as_raw());
        let copy = CStr::from_ptr(name).to_owned();
        (FUNCTIONS.string_delete)(name);
        copy
    };
    let handle = device.native().unwrap();
    let library = Runtime::get().unwrap().library();
    let mut properties = sys::ze_device_properties_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES,
        ..Default::default()
    };
    // SAFETY: the handle is SYCL's native handle of a device of the same Level Zero library.
    let result = unsafe { library.zeDeviceGetProperties.unwrap()(handle, &mut properties) };
    assert_eq!(result, sys::ZE_RESULT_SUCCESS);
    // SAFETY: the name ends with NUL by the specification.
    let level_zero_name = unsafe { CStr::from_ptr(properties.name.as_ptr()) };
    assert_eq!(level_zero_name, name.as_c_str());
}

#[cfg(not(windows))] // As `DEVICES`.
#[test]
fn handles_of_other_backends_are_refused_with_both_names() {
    need_sycl!();
    let device = device(OPENCL);
    let context = default_context(&device);
    let messages = [
        device.native().unwrap_err().to_string(),
        context.native().unwrap_err().to_string(),
    ];
    for message in messages {
        assert!(
            message.contains("opencl") && message.contains("level_zero"),
            "{message}"
        );
    }
}

#[test]
fn memory_of_level_zero_is_usm_in_sycl() {
    need_sycl!();
    let device = device(LEVEL_ZERO);
    let context = default_context(&device);
    let library = Runtime::get().unwrap().library();
    let mut pointer = ptr::null_mut::<c_void>();
    let shared = sys::ze_device_mem_alloc_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
        ..Default::default()
    };
    let host = sys::ze_host_mem_alloc_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
        ..Default::default()
    };
    let (ze_context, ze_device) = (context.native().unwrap(), device.native().unwrap());
    // SAFETY: the handles are SYCL's native handles of the same library; the descriptors and the pointer outlive the call.
    let result = unsafe {
        library.zeMemAllocShared.unwrap()(
            ze_context,
            &shared,
            &host,
            4096,
            64,
            ze_device,
            &mut pointer,
        )
    };
    assert_eq!(result, sys::ZE_RESULT_SUCCESS);
    // SAFETY: the context is alive; the pointer is looked up and not dereferenced. 2 is shared memory, 0 is none.
    let kind = |offset| unsafe {
        (FUNCTIONS.pointer_type)(pointer.wrapping_byte_add(offset), context.as_raw())
    };
    assert_eq!([kind(0), kind(4095)], [2, 2]);
    // SAFETY: the pointer has just been allocated, and has no other use.
    let result = unsafe { library.zeMemFree.unwrap()(ze_context, pointer) };
    assert_eq!(result, sys::ZE_RESULT_SUCCESS);
    assert_eq!(kind(0), 0);
}

#[test]
fn level_zero_signals_an_event_of_sycl() {
    need_sycl!();
    let device = device(LEVEL_ZERO);
    let context = default_context(&device);
    let queue = new_queue(&context, &device).unwrap();
    // SYCL 2024 cannot make one.
    let Some((event, native)) = EventRef::create(&context).unwrap() else {
        return;
    };
    assert!(event.is_complete());
    let library = Runtime::get().unwrap().library();
    // SAFETY: the native event lives as long as the event.
    let result = unsafe { library.zeEventHostReset.unwrap()(native) };
    assert_eq!(result, sys::ZE_RESULT_SUCCESS);
    let after = queue.barrier_after(&event).unwrap();
    assert!(!event.is_complete() && !after.is_complete());
    // SAFETY: as above.
    let result = unsafe { library.zeEventHostSignal.unwrap()(native) };
    assert_eq!(result, sys::ZE_RESULT_SUCCESS);
    after.wait().unwrap();
    assert!(event.is_complete());
}

#[test]
fn a_queue_is_idle_after_a_wait() {
    need_sycl!();
    for device in devices() {
        let queue = new_queue(&default_context(&device), &device).unwrap();
        queue.barrier().unwrap();
        queue.wait().unwrap();
        // Only the newer one of the SYCL runtimes supports the query.
        let sycl = Library::get().unwrap().sycl_path();
        assert_eq!(
            queue.is_idle(),
            sycl.ends_with("libsycl.so.9") || sycl.ends_with("sycl9.dll")
        );
    }
}

#[test]
fn references_can_be_sent_between_threads() {
    need_sycl!();
    let device = device(LEVEL_ZERO);
    let context = default_context(&device);
    thread::scope(|scope| {
        for _ in 0..4 {
            let (context, device) = (context.clone(), &device);
            scope.spawn(move || {
                for _ in 0..500 {
                    // SAFETY: the reference is alive.
                    let copy = unsafe { ContextRef::copy_from_raw(context.as_raw()) }.unwrap();
                    // SAFETY: the capsule's context is of this class, and released once.
                    unsafe { ContextRef::release(context.clone().into_capsule_context()) };
                    assert_eq!(copy, default_context(device));
                }
            });
        }
    });
}

/// The process's own memory in bytes. Pages of files do not count: the kernel drops those when it likes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<usize>().unwrap() << 10
}

#[test]
fn references_are_deleted() {
    need_sycl!();
    let device = device(LEVEL_ZERO);
    let context = default_context(&device);
    let queue = new_queue(&context, &device).unwrap();
    // A leak grows in every round, allocations of other tests do not.
    let growth = (0..5).map(|_| {
        let before = resident();
        for _ in 0..100_000 {
            // SAFETY: the reference is alive; the capsule's context of its copy is of this class, and released once.
            unsafe {
                let copy = ContextRef::copy_from_raw(context.as_raw()).unwrap();
                ContextRef::release(copy.into_capsule_context());
            }
            // SAFETY: the reference is alive.
            drop(unsafe { DeviceRef::copy_from_raw(device.as_raw()) });
            drop((queue.context(), queue.device()));
        }
        resident().saturating_sub(before)
    });
    let least = growth.min().unwrap();
    assert!(least < 1 << 20, "each round leaks at least {least} bytes");
}
