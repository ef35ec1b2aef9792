//! The Python stacks of recorded events, as numbers that the crate's history stores, and Python's names of threads.
//!
//! A stack is read without running Python code: no object of Python is allocated that the garbage collector could run for, and
//! lines and names are looked up later. A stack that was seen before costs a walk over its frames and one look-up.

use std::cell::Cell;
use std::fmt::Write as _;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rustc_hash::FxHashMap;

use crate::interpreter::{function, intern};
use zeusm::history::{self, Holder, StackScope};
use zeusm_process::{Bytes, Local, Mutex};

/// The most frames of a stack; the outermost ones of a deeper stack are left out.
const MOST_FRAMES: usize = 64;
/// The most frames of a stack in an error's message.
const FRAMES_IN_MESSAGE: usize = 3;

/// A position in a code object, which is alive as long as the table that it is in.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Site {
    code: usize,
    /// The offset of the instruction in bytes.
    offset: i32,
}

/// A line of a code object.
pub(crate) struct Frame {
    pub(crate) code: Py<PyAny>,
    pub(crate) line: i32,
}

/// The stacks of one recording.
pub(crate) struct StackTable {
    /// The number of the recording in the process.
    number: u32,
    has_stacks: bool,
    table: Mutex<Table>,
}

/// A stack of a table.
#[derive(Clone)]
pub(crate) struct Stack {
    /// Unique in the process: an event that a thread began in one recording may be recorded in the next one, whose table must
    /// not know its stack.
    pub(crate) number: u32,
    /// The indices of its frames, the innermost first.
    pub(crate) frames: Box<[u32]>,
}

#[derive(Default)]
struct Table {
    numbers: FxHashMap<Box<[Site]>, u32>,
    /// By the frames, as CPython executes a call in a loop at another offset of the same line after some turns.
    numbers_by_frames: FxHashMap<Box<[u32]>, u32>,
    /// In the order of their numbers.
    stacks: Vec<Stack>,
    frame_numbers: FxHashMap<Site, u32>,
    /// By the code object and the line.
    frame_numbers_by_line: FxHashMap<(usize, i32), u32>,
    frames: Vec<Frame>,
    /// Python's names of the threads, by the system's number.
    threads: FxHashMap<u64, String>,
}

/// The table of the current recording. No Python code runs while it is locked.
static CURRENT: Local<Mutex<Option<Arc<StackTable>>>> = Local::new();

/// Starts the table of a new recording.
pub(crate) fn start(has_stacks: bool) {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    replace(Some(Arc::new(StackTable {
        number: NEXT.fetch_add(1, Ordering::Relaxed),
        has_stacks,
        table: Mutex::default(),
    })));
}

/// Drops the table, unless the state of the recording has it.
pub(crate) fn stop() {
    replace(None);
}

fn replace(table: Option<Arc<StackTable>>) {
    let before = std::mem::replace(&mut *CURRENT.get_or_default().lock(), table);
    // Outside the lock, as the drop of code objects may run callbacks.
    drop(before);
}

/// The current table.
pub(crate) fn current() -> Option<Arc<StackTable>> {
    CURRENT.get()?.lock().clone()
}

/// Names the stack of this thread's events by the current Python stack, while a history is recorded.
#[inline]
pub(crate) fn scope(py: Python<'_>) -> Option<StackScope> {
    history::is_recording().then(|| StackScope::enter(read(py)))
}

/// Functions of CPython that are not in the stable ABI; every version from 3.11 on has them.
#[derive(Clone, Copy)]
struct Functions {
    back: unsafe extern "C" fn(*mut ffi::PyFrameObject) -> *mut ffi::PyFrameObject,
    offset: unsafe extern "C" fn(*mut ffi::PyFrameObject) -> i32,
    line: unsafe extern "C" fn(*mut ffi::PyObject, i32) -> i32,
    /// Whether an allocation may run the garbage collector; later versions run it between two instructions.
    allocations_collect: bool,
}

/// `None` for an interpreter without them, which then has no stacks.
fn functions(py: Python<'_>) -> Option<Functions> {
    static FUNCTIONS: Local<Option<Functions>> = Local::new();
    *FUNCTIONS.get_or_init(|| {
        // SAFETY: the types are those of the interpreter's headers.
        unsafe {
            Some(Functions {
                back: function(&[c"PyFrame_GetBack"])?,
                offset: function(&[c"PyFrame_GetLasti"])?,
                line: function(&[c"PyCode_Addr2Line"])?,
                allocations_collect: py.version_info() < (3, 12),
            })
        }
    })
}

/// The number of the current stack; `None` if there is no frame, or stacks are not recorded.
#[cold]
fn read(py: Python<'_>) -> Option<u32> {
    let table = current()?;
    let functions = functions(py)?;
    table.note_thread(py, functions);
    if !table.has_stacks {
        return None;
    }
    let mut sites = [Site::default(); MOST_FRAMES];
    let count = uncollected(functions, || walk(py, functions, &mut sites));
    (count > 0).then(|| table.number(py, functions, &sites[..count]))
}

/// Calls `then` while no allocation of an object runs the garbage collector, and so Python code.
fn uncollected<T>(functions: Functions, then: impl FnOnce() -> T) -> T {
    // SAFETY: the thread is attached, as it has the functions.
    let is_off = functions.allocations_collect && unsafe { ffi::PyGC_Disable() } == 1;
    let result = then();
    if is_off {
        // SAFETY: as above.
        unsafe { ffi::PyGC_Enable() };
    }
    result
}

/// The system's number and Python's name of this thread, if Python's module `threading` knows it.
///
/// No Python code runs, as the interpreter may be exiting, or the thread be deallocating an object: nothing is imported, and
/// only dictionaries are read. An attribute may be a property of the program's own class, and `str()` of anything calls the
/// handlers of signals.
fn this_thread(py: Python<'_>) -> Option<(u64, String)> {
    // SAFETY: the thread is attached, and the interpreter has the dictionary as long as it has modules.
    let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyImport_GetModuleDict()) }?;
    let threading = item(&modules, intern!(py, "threading"))?;
    let threading = threading.cast::<PyModule>().ok()?.dict();
    let active = item(&threading, intern!(py, "_active"))?;
    // SAFETY: any thread may ask for its number.
    let number = unsafe { ffi::PyThread_get_thread_ident() };
    let thread = active.cast::<PyDict>().ok()?.get_item(number).ok()??;
    // SAFETY: the thread is attached; the result is a new reference, or null with an error.
    let fields = unsafe {
        let fields = ffi::PyObject_GenericGetDict(thread.as_ptr(), ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, fields).ok()?
    };
    let id = item(&fields, intern!(py, "_native_id"))?.extract().ok()?;
    let name = item(&fields, intern!(py, "_name"))?;
    let name = name.cast::<PyString>().ok()?.to_string_lossy();
    Some((id, name.into_owned()))
}

/// A value of a dictionary whose keys are names.
fn item<'py>(
    dictionary: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    dictionary.cast::<PyDict>().ok()?.get_item(name).ok()?
}

/// Fills in the frames of this thread from the innermost on, and returns their number. No collection may run meanwhile.
fn walk(_py: Python<'_>, functions: Functions, sites: &mut [Site]) -> usize {
    let mut count = 0;
    // SAFETY: the thread is attached. The functions return new references, which are released; the code objects stay alive, as
    // their frames are being executed. Frame objects may be allocated, during which the garbage collector does not run.
    unsafe {
        let mut frame = ffi::PyThreadState_GetFrame(ffi::PyThreadState_Get());
        while !frame.is_null() && count < sites.len() {
            let code = ffi::PyFrame_GetCode(frame);
            sites[count] = Site {
                code: code.addr(),
                offset: (functions.offset)(frame),
            };
            count += 1;
            let next = (functions.back)(frame);
            ffi::Py_DecRef(code.cast());
            ffi::Py_DecRef(frame.cast());
            frame = next;
        }
        ffi::Py_DecRef(frame.cast());
    }
    count
}

impl StackTable {
    /// Adds the name of this thread at its first event.
    fn note_thread(&self, py: Python<'_>, functions: Functions) {
        thread_local! {
            /// The number of the recording that knows this thread.
            static KNOWN: Cell<u32> = const { Cell::new(0) };
        }
        // During a deallocation an exception may be pending, which failing calls would clear.
        if KNOWN.get() == self.number || PyErr::occurred(py) {
            return;
        }
        KNOWN.set(self.number);
        if let Some((id, name)) = uncollected(functions, || this_thread(py)) {
            self.table.lock().threads.insert(id, name);
        }
    }

    /// Python's name of a thread, by the system's number.
    pub(crate) fn thread_name(&self, id: u64) -> Option<String> {
        self.table.lock().threads.get(&id).cloned()
    }

    /// The number of a stack whose frames are being executed.
    fn number(&self, py: Python<'_>, functions: Functions, sites: &[Site]) -> u32 {
        let mut table = self.table.lock();
        if let Some(&number) = table.numbers.get(sites) {
            return number;
        }
        let frames = sites.iter().map(|&site| table.frame(py, functions, site));
        let frames: Box<[u32]> = frames.collect();
        let number = table.number_of(frames);
        table.numbers.insert(sites.into(), number);
        number
    }

    /// The frames, and the stacks in the order of their numbers.
    pub(crate) fn contents(&self, py: Python<'_>) -> (Vec<Frame>, Vec<Stack>) {
        let table = self.table.lock();
        let frames = table.frames.iter().map(|frame| frame.clone_ref(py));
        (frames.collect(), table.stacks.clone())
    }

    /// The innermost frames of a stack.
    fn innermost(&self, py: Python<'_>, stack: u32) -> Vec<Frame> {
        let table = self.table.lock();
        let known = table.stacks.binary_search_by_key(&stack, |it| it.number);
        let frames = known.map_or(&[][..], |index| &table.stacks[index].frames);
        frames
            .iter()
            .take(FRAMES_IN_MESSAGE)
            .map(|&frame| table.frames[frame as usize].clone_ref(py))
            .collect()
    }
}

impl Table {
    fn frame(&mut self, py: Python<'_>, functions: Functions, site: Site) -> u32 {
        let Self {
            frames,
            frame_numbers,
            frame_numbers_by_line,
            ..
        } = self;
        *frame_numbers.entry(site).or_insert_with(|| {
            let code = std::ptr::with_exposed_provenance_mut(site.code);
            // SAFETY: the code object is being executed, so it is alive; a code object has lines without running Python code.
            let line = unsafe { (functions.line)(code, site.offset) };
            let of_line = frame_numbers_by_line.entry((site.code, line));
            *of_line.or_insert_with(|| {
                // SAFETY: as above.
                let code = unsafe { Bound::from_borrowed_ptr(py, code) }.unbind();
                frames.push(Frame { code, line });
                frames.len() as u32 - 1
            })
        })
    }

    fn number_of(&mut self, frames: Box<[u32]>) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        *self
            .numbers_by_frames
            .entry(frames)
            .or_insert_with_key(|frames| {
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                let frames = frames.clone();
                self.stacks.push(Stack { number, frames });
                number
            })
    }
}

impl Frame {
    /// The file and the qualified name of the function.
    pub(crate) fn names(&self, py: Python<'_>) -> (String, String) {
        let name = |attribute| {
            let name = self.code.bind(py).getattr(attribute).ok();
            let name = name.and_then(|name| name.cast_into::<PyString>().ok());
            name.map_or_else(
                || "?".to_owned(),
                |name| name.to_string_lossy().into_owned(),
            )
        };
        (name("co_filename"), name("co_qualname"))
    }

    fn describe(&self, py: Python<'_>) -> String {
        let (file, function) = self.names(py);
        format!("{function} ({file}:{})", self.line)
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            code: self.code.clone_ref(py),
            line: self.line,
        }
    }
}

/// Lines of an error's message, with the stacks that hold the most memory; empty without any.
pub(crate) fn describe(py: Python<'_>, holders: &[Holder]) -> String {
    let mut text = String::new();
    if !holders.is_empty() {
        text.push_str(
            "\n  most of the memory that was allocated there since the history began is held by",
        );
    }
    let table = current();
    for holder in holders {
        let frames = match (&table, holder.stack) {
            (Some(table), Some(stack)) => table.innermost(py, stack),
            _ => Vec::new(),
        };
        let frames: Vec<String> = frames.iter().map(|frame| frame.describe(py)).collect();
        let place = if frames.is_empty() {
            "an unknown stack".to_owned()
        } else {
            frames.join(" < ")
        };
        let (bytes, blocks) = (Bytes(holder.bytes as u64), holder.blocks);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n    {place}: {bytes} in {blocks} blocks");
    }
    text
}
