//! The Python frames of the calling thread, where the process has an interpreter.
//!
//! CPython's `faulthandler` writes them, as for a crash: with or without the interpreter's lock, without an allocation, and so
//! that a signal handler can do it. It is registered for a signal that nobody sends, and the checker calls its handler as a
//! function. So nothing here depends on the version of Python. Each frame is nine writes; those into a file that cannot exist are
//! kept, as Python's calls of `write` are led to a function of the checker.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ops::Range;
use std::{mem, ptr, slice};

use zeusm_process::{AtFork, ForkLock, maps};

use crate::system::library::symbol;
use crate::system::{imports, signals};

/// The longest text that is kept, of the innermost frames.
pub const LONGEST: usize = 8192;
/// The line in place of the outer frames that are not kept.
const MORE: &str = "... and frames further out";
/// What `faulthandler` writes in that place, after 100 frames.
const ITS_MORE: &str = "  ...";

/// The file that the frames are written to: a number that no file has.
const FILE: c_int = c_int::MAX;

/// The handler that writes the frames.
struct Writer {
    signal: c_int,
    handler: extern "C" fn(c_int),
    /// The interpreter's code.
    code: Range<usize>,
}

/// A text, and where it ends.
struct Text<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

thread_local! {
    /// What the handler writes into, while it is called.
    static TEXT: Cell<*mut Text<'static>> = const { Cell::new(ptr::null_mut()) };
}

/// `write(2)` for Python.
///
/// # Safety
/// As there.
unsafe extern "C-unwind" fn write(file: c_int, bytes: *const c_void, length: usize) -> isize {
    unsafe extern "C-unwind" {
        #[link_name = "write"]
        fn system_write(file: c_int, bytes: *const c_void, length: usize) -> isize;
    }
    let text = TEXT.get();
    if file != FILE || text.is_null() {
        // SAFETY: the caller vouches for the arguments.
        return unsafe { system_write(file, bytes, length) };
    }
    // SAFETY: `dump` of this thread has the text, and the caller has the bytes.
    let (text, bytes) = unsafe { (&mut *text, slice::from_raw_parts(bytes.cast(), length)) };
    text.add(bytes);
    length as isize
}

impl Text<'_> {
    /// Adds what there is room for.
    fn add(&mut self, bytes: &[u8]) {
        let room = &mut self.bytes[self.length..];
        let length = bytes.len().min(room.len());
        room[..length].copy_from_slice(&bytes[..length]);
        self.length += length;
    }
}

/// A handler of a fault may take the lock: the fault is at an access to an allocation, which no code makes that holds it.
static WRITER: ForkLock<Option<Writer>> = ForkLock::new(None);

/// The writer's lock, which a fork holds, as the handler writes for one thread at a time.
pub fn at_fork() -> &'static dyn AtFork {
    &WRITER
}

/// Looks for an interpreter, unless one was found. The caller is a call of Level Zero that holds no lock, as this may wait for the
/// interpreter's.
pub fn find() {
    if WRITER.lock().is_some() {
        return;
    }
    // SAFETY: the symbols of a process with CPython have the types of its C API, and the thread holds no lock.
    if let Some(writer) = unsafe { register() }
        // SAFETY: the function does what `write` does, and this library stays loaded.
        && unsafe { imports::redirect(writer.handler as usize, c"write", write as *const () as usize) }
    {
        *WRITER.lock() = Some(writer);
    }
}

/// Registers `faulthandler` for a signal that has no handler.
///
/// # Safety
/// If the process has symbols of these names, they are those of CPython. The thread holds no lock that another one may wait for with
/// the interpreter's lock.
unsafe fn register() -> Option<Writer> {
    type Query = unsafe extern "C" fn() -> c_int;
    type Release = unsafe extern "C" fn(c_int);
    type Get = unsafe extern "C" fn() -> *mut c_void;
    type Run = unsafe extern "C" fn(*const c_char) -> c_int;
    // SAFETY: the caller vouches for the symbols, whose types these are.
    unsafe {
        let is_initialized: Query = symbol(c"Py_IsInitialized")?;
        let is_finalizing: Option<Query> =
            symbol(c"Py_IsFinalizing").or_else(|| symbol(c"_Py_IsFinalizing"));
        let this_thread: Get = symbol(c"PyGILState_GetThisThreadState")?;
        // A thread that is not Python's may be waited for with the interpreter's lock.
        if is_initialized() == 0
            || is_finalizing.is_none_or(|ask| ask() != 0)
            || this_thread().is_null()
        {
            return None;
        }
        let (ensure, release): (Query, Release) = (
            symbol(c"PyGILState_Ensure")?,
            symbol(c"PyGILState_Release")?,
        );
        let (occurred, run): (Get, Run) =
            (symbol(c"PyErr_Occurred")?, symbol(c"PyRun_SimpleString")?);
        let signal = (libc::SIGRTMIN()..=libc::SIGRTMAX())
            .rev()
            .find(|signal| handler(*signal) == Some(libc::SIG_DFL))?;
        // In the program's module, where it leaves no name.
        let code = format!(
            "try: __import__('faulthandler').register({signal}, {FILE}, False, False)\nexcept Exception: pass"
        );
        let code = CString::new(code).ok()?;
        let state = ensure();
        // The import may run Python code, which must not find an exception.
        if occurred().is_null() {
            run(code.as_ptr());
        }
        release(state);
        let action = signals::action(signal)?;
        let is_plain = action.sa_flags & libc::SA_SIGINFO == 0;
        let handler = Some(action.sa_sigaction).filter(|it| is_plain && *it != libc::SIG_DFL)?;
        let mut all = maps::mappings().into_iter();
        Some(Writer {
            signal,
            handler: mem::transmute::<usize, extern "C" fn(c_int)>(handler),
            code: all.find(|it| it.range.contains(&handler))?.range,
        })
    }
}

/// What handles a signal.
fn handler(signal: c_int) -> Option<usize> {
    signals::action(signal).map(|action| action.sa_sigaction)
}

/// Writes the frames into `text`, one a line, the innermost first, and returns the length, with the interpreter's code if there
/// are frames. A signal handler can call it.
pub fn dump(text: &mut [u8]) -> (usize, Range<usize>) {
    let writer = WRITER.lock();
    let length = writer.as_ref().map_or(0, |writer| writer.dump(text));
    let writer = writer.as_ref().filter(|_| length > 0);
    (length, writer.map_or(0..0, |writer| writer.code.clone()))
}

impl Writer {
    fn dump(&self, text: &mut [u8]) -> usize {
        // The interpreter restores the action at its end.
        if handler(self.signal) != Some(self.handler as usize) {
            return 0;
        }
        let mut text = Text {
            bytes: text,
            length: 0,
        };
        TEXT.set((&raw mut text).cast());
        (self.handler)(self.signal);
        TEXT.set(ptr::null_mut());
        text.length
    }
}

/// The frames in a text of [`dump`].
pub fn frames(text: &[u8]) -> Vec<String> {
    let is_whole = text.len() < LONGEST;
    let text = String::from_utf8_lossy(text);
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let mut frames: Vec<_> = whole
        .lines()
        .filter_map(|line| line.strip_prefix("  File "))
        .map(|frame| format!("File {}", unescaped(frame)))
        .collect();
    if !is_whole || whole.ends_with(ITS_MORE) {
        frames.push(MORE.to_owned());
    }
    frames
}

/// A line with the characters in place of `\xe9`, `\u1234` and `\U0001f600`.
fn unescaped(line: &str) -> String {
    let mut parts = line.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = match part.as_bytes().first() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        let code = part.get(1..=digits).filter(|_| digits > 0);
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        match code.and_then(char::from_u32) {
            Some(character) => {
                text.push(character);
                text += &part[1 + digits..];
            }
            None => text = text + "\\" + part,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_those_of_whole_lines() {
        let text = "Stack (most recent call first):\n  File \"pr\\xf6gram \\u4e00 \\U0001f600 a\\b.py\", line 3 in f\n";
        let frame = "File \"prögram 一 😀 a\\b.py\", line 3 in f";
        assert_eq!(frames(text.as_bytes()), [frame]);
        let more = format!("{text}  ...\n");
        assert_eq!(frames(more.as_bytes()), [frame, MORE]);
        let mut long = [b'x'; LONGEST];
        long[..text.len()].copy_from_slice(text.as_bytes());
        assert_eq!(frames(&long), [frame, MORE]);
    }
}
