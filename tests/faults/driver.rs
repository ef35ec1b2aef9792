//! The library that fails, `tests/fault-driver`, and how it is told to.

use std::env;
use std::ffi::{CStr, c_char};
use std::path::PathBuf;

use zeusm::runtime::Choice;
use zeusm::{Runtime, sys};

/// The functions that the library has beside Level Zero's.
pub struct FaultDriver {
    path: PathBuf,
    arm: unsafe extern "C" fn(u64, u32),
    fired: unsafe extern "C" fn() -> *const c_char,
    live: unsafe extern "C" fn(*mut c_char, usize) -> u64,
}

impl FaultDriver {
    /// Opens it where cargo puts it: beside the tests, which depend on it.
    pub fn open() -> Self {
        let program = env::current_exe().unwrap();
        let path = program
            .ancestors()
            .skip(1)
            .take(2)
            .map(|folder| folder.join("libzeusm_fault_driver.so"))
            .find(|path| path.is_file())
            .expect("cargo builds the fault driver with the tests");
        let library = sys::load_from(&path).unwrap();
        // SAFETY: these are the types of the functions.
        unsafe {
            Self {
                arm: library.symbol(c"zeusm_fault_arm").unwrap(),
                fired: library.symbol(c"zeusm_fault_fired").unwrap(),
                live: library.symbol(c"zeusm_fault_live").unwrap(),
                path,
            }
        }
    }

    /// Has it serve this process.
    pub fn try_serve(&self) -> zeusm::Result<&'static Runtime> {
        Runtime::choose(&Choice::Path(self.path.clone()))
    }

    /// Has it serve this process, and expects that it can.
    pub fn serve(&self) -> &'static Runtime {
        self.try_serve().unwrap()
    }

    /// Counts anew; the `nth` call, from 1, answers `code`.
    pub fn arm(&self, nth: u64, code: sys::ze_result_t) {
        // SAFETY: the function takes numbers.
        unsafe { (self.arm)(nth, code.0) }
    }

    /// The function that has failed.
    pub fn fired(&self) -> Option<String> {
        // SAFETY: the function takes nothing.
        let name = unsafe { (self.fired)() };
        if name.is_null() {
            return None;
        }
        // SAFETY: it is a string that stays until the next `arm`, which this thread makes.
        let name = unsafe { CStr::from_ptr(name) };
        Some(name.to_string_lossy().into_owned())
    }

    /// How many things are made and not given back, and which.
    pub fn live(&self) -> (u64, String) {
        let mut text: [c_char; 200] = [0; 200];
        // SAFETY: the text has room for what it says.
        let count = unsafe { (self.live)(text.as_mut_ptr(), text.len()) };
        // SAFETY: the function ends it with NUL.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        (count, text.to_string_lossy().into_owned())
    }
}
