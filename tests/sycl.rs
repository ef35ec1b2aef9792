//! The SYCL layer with a real SYCL runtime: dpctl's library is opened as by `import dpctl`, over the Level Zero runtime of
//! zeusm, and with an OpenCL CPU device as one of another backend.
//!
//! `ZEUSM_TEST_DPCTL` names the folder of the package dpctl (`.../site-packages/dpctl`). Without it there is no SYCL runtime
//! to test, and each test reports that.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::env;
use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr;
use std::sync::LazyLock;
use std::thread;

use libloading::os::unix;
use zeusm::sycl::{Backend, ContextRef, DeviceRef, DeviceType, Error, EventRef, Library, QueueRef};
use zeusm::{Runtime, UsmKind, sys};

const VARIABLE: &str = "ZEUSM_TEST_DPCTL";
const LEVEL_ZERO: &str = "level_zero:gpu:0";
/// The CPU runtime's other device.
const LEVEL_ZERO_CPU: &str = "level_zero:cpu:0";
const OPENCL: &str = "opencl:cpu:0";

/// The folder of dpctl, once its library is in the process; `None` where the variable is not set.
static DPCTL: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let folder = PathBuf::from(env::var_os(VARIABLE)?);
    assert!(
        matches!(Library::get(), Err(Error::NoDpctl { .. })),
        "the lookup must not load anything"
    );
    // The OpenCL runtime of dpctl's environment, for either kind of OpenCL loader.
    let opencl = folder.join("../../../libintelocl.so");
    for variable in ["OCL_ICD_VENDORS", "OCL_ICD_FILENAMES"] {
        // SAFETY: the tests wait for this block first.
        unsafe { env::set_var(variable, &opencl) };
    }
    Runtime::get().unwrap();
    let library = folder.join("libDPCTLSyclInterface.so");
    // SAFETY: the library is that of the dpctl under test, opened as the dynamic linker does for Python.
    let library = unsafe { unix::Library::new(&library) }.unwrap();
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

fn device(filter: &str) -> DeviceRef {
    DeviceRef::from_filter(filter).unwrap()
}

fn devices() -> [DeviceRef; 3] {
    [device(LEVEL_ZERO), device(LEVEL_ZERO_CPU), device(OPENCL)]
}

#[test]
fn the_library_is_the_one_in_the_process() {
    let folder = need_sycl!();
    let library = Library::get().unwrap();
    assert_eq!(
        library.path().canonicalize().unwrap(),
        folder
            .join("libDPCTLSyclInterface.so")
            .canonicalize()
            .unwrap()
    );
    let sycl = library.sycl_path().file_name().unwrap().to_str().unwrap();
    assert!(["libsycl.so.9", "libsycl.so.7"].contains(&sycl), "{sycl}");
    assert!(ptr::eq(library, Library::get().unwrap()));
}

#[test]
fn filter_strings_select_devices() {
    need_sycl!();
    for (filter, backend, kind) in [
        (LEVEL_ZERO, Backend::LevelZero, DeviceType::Gpu),
        (LEVEL_ZERO_CPU, Backend::LevelZero, DeviceType::Cpu),
        (OPENCL, Backend::OpenCl, DeviceType::Cpu),
    ] {
        let device = device(filter);
        assert_eq!((device.backend(), device.device_type()), (backend, kind));
        assert_eq!(device.relative_id().unwrap(), Some(0));
        assert_eq!(device.filter_string().unwrap(), filter);
        assert!(!device.name().unwrap().is_empty());
    }
    assert_eq!(device("level_zero"), device(LEVEL_ZERO));
    assert_ne!(device(OPENCL), device(LEVEL_ZERO));
    assert_ne!(device(LEVEL_ZERO_CPU), device(LEVEL_ZERO));
}

#[test]
fn filter_strings_that_select_no_device_are_quoted() {
    need_sycl!();
    for filter in [
        "",
        "level_zero:gpu:99",
        "cuda",
        "no such thing",
        "level_zero:gpu:-1",
        "gpu\0cpu",
    ] {
        let error = DeviceRef::from_filter(filter).unwrap_err();
        assert_eq!(error, Error::NoSuchDevice(filter.to_owned()));
        assert!(error.to_string().contains(&format!("{filter:?}")));
    }
}

#[test]
fn the_default_device_is_the_gpu() {
    need_sycl!();
    assert_eq!(DeviceRef::default_device().unwrap(), device(LEVEL_ZERO));
}

#[test]
fn copied_references_are_equal() {
    need_sycl!();
    let context = device(LEVEL_ZERO).default_context().unwrap();
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
    let set: HashSet<_> = [clone, copy].into();
    assert_eq!(set.len(), 1);
    let left = set.into_iter().next().unwrap();
    assert_eq!(left.backend(), Backend::LevelZero);
    assert!(format!("{left:?}").contains("level_zero"));
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
        let context = device.default_context().unwrap();
        assert_eq!(context, device.default_context().unwrap());
        assert!(context.devices().unwrap().contains(&device));
        let queue = QueueRef::create(&context, &device).unwrap();
        assert_eq!(queue.context().unwrap(), context);
        assert_eq!(queue.device().unwrap(), device);
        assert_eq!(queue.backend(), device.backend());
        assert!(!queue.is_in_order());
        assert_eq!(queue, queue.clone());
        assert_ne!(queue, QueueRef::create(&context, &device).unwrap());
    }
    let [level_zero, other, opencl] = devices();
    let context = level_zero.default_context().unwrap();
    // The context is the platform's, which has both devices.
    assert_eq!(context, other.default_context().unwrap());
    assert_ne!(context, opencl.default_context().unwrap());
    assert_eq!(
        QueueRef::create(&context, &opencl),
        Err(Error::Failed("DPCTLQueue_Create"))
    );
}

#[test]
fn a_barrier_is_complete_after_a_wait() {
    need_sycl!();
    for device in devices() {
        let queue = QueueRef::create(&device.default_context().unwrap(), &device).unwrap();
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
    let context = device.default_context().unwrap();
    let handle = context.native().unwrap();
    assert!(!handle.is_null());
    assert_eq!(context.clone().native().unwrap(), handle);
    let name = device.name().unwrap();
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
    let level_zero_name = unsafe { std::ffi::CStr::from_ptr(properties.name.as_ptr()) };
    assert_eq!(level_zero_name.to_str().unwrap(), name);
}

#[test]
fn handles_of_other_backends_are_refused_with_both_names() {
    need_sycl!();
    let device = device(OPENCL);
    let context = device.default_context().unwrap();
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
    let context = device.default_context().unwrap();
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
    for address in [pointer.addr(), pointer.addr() + 4095] {
        let kind = context.pointer_kind(address).unwrap();
        assert_eq!(kind, Some(UsmKind::Shared));
        let its_device = context.pointer_device(address).unwrap();
        assert_eq!(its_device, Some(device.clone()));
    }
    // SAFETY: the pointer has just been allocated, and has no other use.
    let result = unsafe { library.zeMemFree.unwrap()(ze_context, pointer) };
    assert_eq!(result, sys::ZE_RESULT_SUCCESS);
    assert_eq!(context.pointer_kind(pointer.addr()), Ok(None));
}

#[test]
fn other_memory_has_neither_kind_nor_device() {
    need_sycl!();
    let here = 0u8;
    for device in devices() {
        let context = device.default_context().unwrap();
        for pointer in [0, 1, usize::MAX, (&raw const here).addr()] {
            assert_eq!(context.pointer_kind(pointer), Ok(None), "{pointer:#x}");
            // SYCL throws, which must become an error each time, without a leak.
            for _ in 0..100 {
                match context.pointer_device(pointer) {
                    Ok(device) => assert!(pointer == 0 && device.is_none()),
                    Err(Error::Thrown { function, text }) => {
                        assert_eq!(function, "DPCTLUSM_GetPointerDevice");
                        assert!(text.contains("USM"), "{text}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

#[test]
fn a_queue_is_idle_after_a_wait() {
    need_sycl!();
    for device in devices() {
        let queue = QueueRef::create(&device.default_context().unwrap(), &device).unwrap();
        queue.barrier().unwrap();
        queue.wait().unwrap();
        // Only the newer one of the SYCL runtimes supports the query.
        let sycl = Library::get().unwrap().sycl_path();
        assert_eq!(queue.is_idle(), sycl.ends_with("libsycl.so.9"));
    }
}

#[test]
fn references_can_be_sent_between_threads() {
    need_sycl!();
    let device = device(LEVEL_ZERO);
    let context = device.default_context().unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (context, device) = (context.clone(), &device);
            scope.spawn(move || {
                for _ in 0..500 {
                    // SAFETY: the reference is alive.
                    let copy = unsafe { ContextRef::copy_from_raw(context.as_raw()) }.unwrap();
                    // SAFETY: the capsule's context is of this class, and released once.
                    unsafe { ContextRef::release(context.clone().into_capsule_context()) };
                    assert_eq!(copy, device.default_context().unwrap());
                }
            });
        }
    });
}

/// The resident memory of the process in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn references_are_deleted() {
    need_sycl!();
    let device = device(LEVEL_ZERO);
    let context = device.default_context().unwrap();
    let queue = QueueRef::create(&context, &device).unwrap();
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
