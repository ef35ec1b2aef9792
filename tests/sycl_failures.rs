//! What the SYCL layer does where SYCL or its device fails, which libraries in C simulate.
#![allow(clippy::unwrap_used)]

#[path = "support/child.rs"]
mod child;
#[path = "support/compile.rs"]
mod compile;

use std::env;
use std::ffi::{CStr, CString, c_char, c_uint};
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use compile::compile;
use libloading::os::unix;
use zeusm::sycl::{Backend, ContextRef, DeviceRef, Error, EventRef, Library, QueueRef, RawRef};
use zeusm::{Runtime, sys};

/// Where the simulated libraries are, and the file name of SYCL's.
const FOLDER: &str = "ZEUSM_TEST_RUN";

const SUBMITTED: c_uint = 1;
const COMPLETE: c_uint = 3;

/// The variables of the simulation; see the file in C.
#[repr(C)]
struct Variables {
    failing: *const c_char,
    waits: c_uint,
    backend: c_uint,
    status: c_uint,
    is_in_order: bool,
    is_empty: bool,
    device: usize,
}

/// Runs a test in a process with dpctl's library and the SYCL runtime of this file name, over the library of `limited.c`.
fn simulated(sycl: &str, test: &str) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path();
    compile(folder, "liblimited.so", "limited.c", &[]);
    compile(folder, sycl, "sycl.c", &["-DMETHODS"]);
    let linked = format!("-l:{sycl}");
    let options = [
        "-L.",
        &linked,
        "-lstdc++",
        "-Wl,--no-as-needed,-rpath,$ORIGIN",
    ];
    compile(folder, "libDPCTLSyclInterface.so", "sycl.c", &options);
    let mut command = child::command(test);
    command.env(FOLDER, folder);
    command.env("ZEUSM_RUNTIME", folder.join("liblimited.so"));
    child::run(command);
}

/// The simulation in this process.
struct Simulation {
    variables: NonNull<Variables>,
    context: ContextRef,
    queue: QueueRef,
}

impl Simulation {
    fn open() -> Self {
        let runtime = Runtime::get().unwrap();
        let folder = PathBuf::from(env::var_os(FOLDER).unwrap());
        let path = folder.join("libDPCTLSyclInterface.so");
        // SAFETY: the library has no initialisers, stays open, and has these objects.
        unsafe {
            let library = unix::Library::new(path).unwrap();
            let object = |name: &CStr| -> RawRef { *library.get(name).unwrap() };
            let simulation = Self {
                variables: NonNull::new(object(c"simulated").cast()).unwrap(),
                context: ContextRef::copy_from_raw(object(c"Context_object")).unwrap(),
                queue: QueueRef::copy_from_raw(object(c"Queue_object")).unwrap(),
            };
            std::mem::forget(library);
            simulation.set(|it| it.backend = 2);
            simulation.set(|it| it.status = COMPLETE);
            let device = runtime.default_device().unwrap();
            simulation.set(|it| it.device = device.handle().addr());
            simulation
        }
    }

    fn set<T>(&self, change: impl FnOnce(&mut Variables) -> T) -> T {
        // SAFETY: the test has one thread, and there is no other reference meanwhile.
        change(unsafe { &mut *self.variables.as_ptr() })
    }

    /// Calls `then` while a function fails.
    fn failing<T>(&self, function: &str, then: impl FnOnce() -> T) -> T {
        let name = CString::new(function).unwrap();
        self.set(|it| it.failing = name.as_ptr());
        let answer = then();
        self.set(|it| it.failing = ptr::null());
        answer
    }

    fn waits(&self) -> c_uint {
        self.set(|it| it.waits)
    }

    /// Has events complete after two queries of the devices' status.
    fn complete_later(&self) -> JoinHandle<()> {
        let variables = self.variables.as_ptr().expose_provenance();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(250));
            // SAFETY: the variables are there as long as the process.
            unsafe {
                let variables = ptr::with_exposed_provenance_mut::<Variables>(variables);
                (&raw mut (*variables).status).write_volatile(COMPLETE);
            }
        })
    }

    fn lose_device(&self) {
        let path = env::var_os("ZEUSM_RUNTIME").unwrap();
        // SAFETY: the library is a Level Zero driver, and this is the type of the function, which has no preconditions.
        unsafe {
            let library = sys::load_from(path).unwrap();
            let lose: unsafe extern "C" fn() = library.symbol(c"limited_lose_device").unwrap();
            lose();
        }
    }
}

fn is_thrown<T>(answer: Result<T, Error>, by: &str) -> bool {
    matches!(answer, Err(Error::Thrown { function, text }) if function.contains(by) || text.contains(by))
}

#[test]
fn a_function_that_returns_nothing_is_named() {
    simulated("libsycl.so.9", "nothing");
}

#[test]
#[ignore = "run by a_function_that_returns_nothing_is_named"]
fn nothing() {
    let it = Simulation::open();
    let event = it.queue.barrier().unwrap();
    type Call<'a> = (&'static str, &'a dyn Fn() -> Result<(), Error>);
    let calls: [Call<'_>; 8] = [
        ("DPCTLContext_GetDevices", &|| {
            it.context.devices().map(drop)
        }),
        ("DPCTLDeviceVector_GetAt", &|| {
            it.context.devices().map(drop)
        }),
        ("DPCTLQueue_GetContext", &|| it.queue.context().map(drop)),
        ("DPCTLQueue_GetDevice", &|| it.queue.device().map(drop)),
        ("DPCTLQueue_SubmitBarrier", &|| it.queue.barrier().map(drop)),
        ("DPCTLQueue_SubmitBarrierForEvents", &|| {
            it.queue.barrier_after(&event).map(drop)
        }),
        ("DPCTLContext_Copy", &|| {
            // SAFETY: the reference is alive.
            unsafe { ContextRef::copy_from_raw(it.context.as_raw()) }.map(drop)
        }),
        ("event_native", &|| EventRef::create(&it.context).map(drop)),
    ];
    for (function, call) in calls {
        call().unwrap();
        let Err(Error::Failed(named)) = it.failing(function, call) else {
            panic!("{function}");
        };
        assert!(named == function || function == "event_native", "{named}");
    }
    // SAFETY: the reference is alive.
    let device = unsafe { DeviceRef::copy_from_raw(it.queue.device().unwrap().as_raw()) }.unwrap();
    assert!(is_thrown(
        it.failing("device_native", || device.native()),
        "device_native"
    ));
    assert!(is_thrown(
        it.failing("event_make", || EventRef::create(&it.context)),
        "make_event"
    ));
}

#[test]
fn versions_differ_in_events_and_queues() {
    for (sycl, test) in [
        ("libsycl.so.9", "version_9"),
        ("libsycl.so.7", "version_7"),
        ("libsycl.so.6", "version_6"),
    ] {
        simulated(sycl, test);
    }
}

#[test]
#[ignore = "run by versions_differ_in_events_and_queues"]
fn version_9() {
    let it = Simulation::open();
    assert!(EventRef::create(&it.context).unwrap().is_some());
    assert!(!it.queue.is_idle());
    it.set(|it| it.is_empty = true);
    assert!(it.queue.is_idle());
    assert!(!it.failing("queue_is_empty", || it.queue.is_idle()));
    for (number, backend) in [
        (1, Backend::Cuda),
        (4, Backend::OpenCl),
        (8, Backend::Hip),
        (0, Backend::Unknown),
    ] {
        it.set(|it| it.backend = number);
        assert_eq!(it.context.backend(), backend);
        let error = EventRef::create(&it.context).unwrap_err().to_string();
        assert!(error.contains(&backend.to_string()), "{error}");
    }
}

#[test]
#[ignore = "run by versions_differ_in_events_and_queues"]
fn version_7() {
    let it = Simulation::open();
    assert!(EventRef::create(&it.context).unwrap().is_none());
    it.set(|it| it.is_empty = true);
    assert!(!it.queue.is_idle());
    it.queue.wait_beside_submissions().unwrap();
    assert_eq!(it.waits(), 1);
}

#[test]
#[ignore = "run by versions_differ_in_events_and_queues"]
fn version_6() {
    let it = Simulation::open();
    let path = Library::get().unwrap().sycl_path().to_owned();
    let error = EventRef::create(&it.context).unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error}"
    );
}

#[test]
fn waits_end() {
    simulated("libsycl.so.9", "waits");
}

#[test]
#[ignore = "run by waits_end"]
fn waits() {
    let it = Simulation::open();
    it.queue.wait().unwrap();
    assert_eq!(it.waits(), 1);
    // A barrier takes the place of SYCL's wait for an in-order queue.
    it.set(|it| it.is_in_order = true);
    it.queue.wait().unwrap();
    assert_eq!(it.waits(), 1);
    it.failing("DPCTLQueue_SubmitBarrier", || it.queue.wait())
        .unwrap();
    assert_eq!(it.waits(), 2);
    // An out-of-order queue is polled for a second.
    it.set(|it| it.is_in_order = false);
    it.queue.wait_beside_submissions().unwrap();
    assert_eq!(it.waits(), 3);
    it.set(|it| it.is_empty = true);
    it.queue.wait_beside_submissions().unwrap();
    assert_eq!(it.waits(), 3);
    it.set(|it| it.is_in_order = true);
    it.queue.wait_beside_submissions().unwrap();
    assert_eq!(it.waits(), 3);
    // A status that changes is polled, and the device's, too.
    let event = it.queue.barrier().unwrap();
    assert_eq!(event, it.queue.barrier().unwrap());
    let waits: [&dyn Fn() -> zeusm::Result<()>; 2] =
        [&|| event.wait(), &|| it.queue.wait_for(&event)];
    for wait in waits {
        it.set(|it| it.status = SUBMITTED);
        let completed = it.complete_later();
        wait().unwrap();
        completed.join().unwrap();
    }
    assert_eq!(it.waits(), 3);
    // SYCL waits for an event whose status is neither pending nor complete.
    it.set(|it| it.status = 0);
    event.wait().unwrap();
    assert_eq!(it.waits(), 4);
}

#[test]
fn work_on_a_lost_device_is_not_waited_for() {
    simulated("libsycl.so.9", "loss");
}

#[test]
#[ignore = "run by work_on_a_lost_device_is_not_waited_for"]
fn loss() {
    let it = Simulation::open();
    let event = it.queue.barrier().unwrap();
    let fails = || it.failing("DPCTLQueue_Wait", || it.queue.wait());
    // As long as no loss is known, a failed wait may be repeated.
    for waits in [1, 2] {
        assert!(is_thrown(fails(), "DPCTLQueue_Wait"));
        assert_eq!(it.waits(), waits);
    }
    it.lose_device();
    it.set(|it| it.status = SUBMITTED);
    let lost = [event.wait(), it.queue.wait_for(&event)];
    for answer in lost {
        assert!(answer.unwrap_err().to_string().contains("is lost"));
    }
    for is_in_order in [false, true] {
        it.set(|it| it.is_in_order = is_in_order);
        assert!(is_thrown(fails(), "is lost"));
        assert_eq!(it.waits(), 2);
    }
    // Without the device, SYCL tells.
    it.set(|it| it.is_in_order = false);
    let answer = it.failing("DPCTLQueue_GetDevice", || it.queue.wait());
    answer.unwrap();
    assert_eq!(it.waits(), 3);
    it.set(|it| it.status = COMPLETE);
    event.wait().unwrap();
    it.queue.wait_for(&event).unwrap();
}
