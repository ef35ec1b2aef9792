//! The library `tests/fault-driver`, and its controls.

use std::env;
use std::ffi::{CStr, c_char};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use zeusm::runtime::RUNTIME_VARIABLE;
use zeusm::{Context, Device, Event, Queue, Runtime, sys};

/// The control functions that the library exports in addition to those of Level Zero.
#[derive(Clone)]
pub struct FaultDriver {
    path: PathBuf,
    arm: unsafe extern "C" fn(u64, u32),
    fired: unsafe extern "C" fn() -> *const c_char,
    lose: unsafe extern "C" fn(usize, usize),
    lose_here: extern "C" fn(u32),
    live: unsafe extern "C" fn(*mut c_char, usize) -> u64,
    hold: unsafe extern "C" fn(),
    release: unsafe extern "C" fn(),
}

impl FaultDriver {
    /// Opens the library in the folder of the test program or its parent, where cargo puts it.
    pub fn open() -> Self {
        let program = env::current_exe().unwrap();
        let path = program
            .ancestors()
            .skip(1)
            .take(2)
            .map(|folder| folder.join("libzeusm_fault_driver.so"))
            .find(|path| path.is_file())
            .expect("cargo builds the fault driver with the tests");
        // SAFETY: it is a Level Zero driver.
        let library = unsafe { sys::load_from(&path) }.unwrap();
        // SAFETY: these are the types of the functions.
        unsafe {
            Self {
                arm: library.symbol(c"zeusm_fault_arm").unwrap(),
                fired: library.symbol(c"zeusm_fault_fired").unwrap(),
                lose: library.symbol(c"zeusm_fault_lose").unwrap(),
                lose_here: library.symbol(c"zeusm_fault_lose_here").unwrap(),
                live: library.symbol(c"zeusm_fault_live").unwrap(),
                hold: library.symbol(c"zeusm_fault_hold").unwrap(),
                release: library.symbol(c"zeusm_fault_release").unwrap(),
                path,
            }
        }
    }

    /// Selects the library as the runtime of this process.
    pub fn try_serve(&self) -> zeusm::Result<&'static Runtime> {
        // SAFETY: no other thread of the program runs yet that reads the environment.
        unsafe { env::set_var(RUNTIME_VARIABLE, &self.path) };
        Runtime::get()
    }

    /// Selects the library as the runtime of this process, which must succeed.
    pub fn serve(&self) -> &'static Runtime {
        self.try_serve().unwrap()
    }

    /// Resets the count of calls and arms a failure: the `nth` call from now on, from 1, returns `code`.
    pub fn arm(&self, nth: u64, code: sys::ze_result_t) {
        // SAFETY: the function has no preconditions.
        unsafe { (self.arm)(nth, code.0) }
    }

    /// The function whose call has failed.
    pub fn fired(&self) -> Option<String> {
        // SAFETY: the function has no preconditions.
        let name = unsafe { (self.fired)() };
        if name.is_null() {
            return None;
        }
        // SAFETY: the string is valid until the next `arm`, which no other thread calls meanwhile.
        let name = unsafe { CStr::from_ptr(name) };
        Some(name.to_string_lossy().into_owned())
    }

    /// Disarms the failure; the function whose call has failed.
    pub fn disarm(&self) -> Option<String> {
        let fired = self.fired();
        self.arm(0, sys::ZE_RESULT_SUCCESS);
        fired
    }

    /// From now on, waits for the event fail as after a loss of its device, and so do queries of the status of `device`.
    pub fn lose(&self, event: &Event, device: Option<&Device>) {
        let device = device.map_or(0, |device| device.handle().addr());
        // SAFETY: the function has no preconditions.
        unsafe { (self.lose)(event.handle().addr(), device) }
    }

    /// From now on, waits for command lists fail in the calling thread as after a loss of the device, and barriers if wanted.
    pub fn lose_here(&self, barriers: bool) {
        (self.lose_here)(u32::from(barriers));
    }

    /// Submits a barrier that is in flight until the [release](Held::release).
    #[must_use]
    pub fn hold(&self, queue: &Queue) -> Held {
        // SAFETY: the function has no preconditions.
        unsafe { (self.hold)() };
        Held {
            event: queue.barrier(&[]).unwrap(),
            driver: self.clone(),
        }
    }

    /// Lets all held barriers complete.
    fn release(&self) {
        // SAFETY: the function has no preconditions.
        unsafe { (self.release)() }
    }

    /// Calls a function that may wait for a held barrier after the armed failure. The barrier is released a moment after the
    /// failure, or when the function returns.
    pub fn release_after_failure<T>(&self, call: impl FnOnce() -> T) -> T {
        // Disconnected when the function returns or panics.
        let (called, returned) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let returns_within = |milliseconds| {
                    returned.recv_timeout(Duration::from_millis(milliseconds))
                        != Err(RecvTimeoutError::Timeout)
                };
                while self.fired().is_none() && !returns_within(1) {}
                returns_within(20);
                self.release();
            });
            let _called = called;
            call()
        })
    }

    /// The number of live objects, and their kinds.
    pub fn live(&self) -> (u64, String) {
        let mut text: [c_char; 200] = [0; 200];
        // SAFETY: the buffer has the given length.
        let count = unsafe { (self.live)(text.as_mut_ptr(), text.len()) };
        // SAFETY: the function terminates the string with NUL.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        (count, text.to_string_lossy().into_owned())
    }
}

/// What most tests begin with: the library as the runtime of this process, and a queue.
pub fn set_up() -> (FaultDriver, Device, Context, Queue) {
    let driver = FaultDriver::open();
    let device = driver.serve().default_device().unwrap();
    let context = Context::new(device.driver()).unwrap();
    let queue = Queue::new(&context, &device).unwrap();
    (driver, device, context, queue)
}

/// A barrier that is in flight until the release or the drop, so that a failing test does not hang.
pub struct Held {
    event: Event,
    driver: FaultDriver,
}

impl Held {
    /// Lets it complete.
    pub fn release(&self) {
        self.driver.release();
    }
}

impl Deref for Held {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}
