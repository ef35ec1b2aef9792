//! The Python frames of the calling thread, where the process has an interpreter.
//!
//! They are read from the interpreter's memory, as a debugger reads them: no function of the interpreter is called, nothing is
//! allocated and no lock is taken, so a signal handler can do it, with or without the interpreter's lock. A thread's own
//! frames do not change while it reads them, and keep their code objects alive.
//!
//! `layout`: where the fields are in this version. `lines`: the line of an instruction.

mod layout;
mod lines;

use std::ffi::c_void;

use crate::process::sync::Lazy;
use layout::Layout;

/// The longest text that is kept.
pub const LONGEST: usize = 6144;
/// The most frames that are kept, the innermost ones.
const MOST_FRAMES: usize = 64;
/// The line in place of the outer frames that are not kept.
const MORE: &[u8] = b"... and frames further out\n";
/// The line of a frame whose file is that of the frame before it begins with this; others with `File "`.
const SAME_FILE: &str = "=";

type ThreadState = unsafe extern "C" fn() -> *const c_void;

/// An interpreter whose frames can be read.
struct Interpreter {
    thread_state: ThreadState,
    code_type: usize,
    layout: Layout,
}

static INTERPRETER: Lazy<Option<Interpreter>> = Lazy::new();

/// Looks for an interpreter, once.
pub fn find() {
    INTERPRETER.get_or_make(|| {
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: the name is a C string.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            (!found.is_null()).then_some(found as usize)
        };
        let (version, thread_state) = (
            symbol(c"Py_Version")?,
            symbol(c"PyGILState_GetThisThreadState")?,
        );
        // SAFETY: CPython's symbols of these names have these types.
        let (version, thread_state) = unsafe {
            (
                *(version as *const u64),
                std::mem::transmute::<usize, ThreadState>(thread_state),
            )
        };
        // SAFETY: the symbol is the runtime of an interpreter of this version.
        let layout = unsafe { Layout::of(version, symbol(c"_PyRuntime")?) }?;
        Some(Interpreter {
            thread_state,
            code_type: symbol(c"PyCode_Type")?,
            layout,
        })
    });
}

/// Writes the frames into `text`, one a line, the innermost first, and returns the length. A signal handler can call it.
pub fn dump(text: &mut [u8]) -> usize {
    let Some(Some(interpreter)) = INTERPRETER.get() else {
        return 0;
    };
    let Some(room) = text.len().checked_sub(MORE.len()) else {
        return 0;
    };
    let (kept, rest) = text.split_at_mut(room);
    let mut kept = Text {
        text: kept,
        length: 0,
    };
    // SAFETY: the interpreter was found in this process.
    let is_whole = unsafe { interpreter.dump(&mut kept) };
    let length = kept.length;
    if is_whole {
        return length;
    }
    // The rest is as long as the line, and follows the frames that are kept.
    rest.copy_from_slice(MORE);
    text.copy_within(room.., length);
    length + MORE.len()
}

/// The frames in a text of [`dump`].
pub fn frames(text: &[u8]) -> Vec<String> {
    let mut file = "";
    let text = String::from_utf8_lossy(text);
    let whole = |line| match str::strip_prefix(line, SAME_FILE) {
        Some(rest) => format!("{file}{rest}"),
        None => {
            // A name may have quotes, and the function's has none.
            file = line.rfind("\", line ").map_or(line, |end| &line[..end]);
            line.to_owned()
        }
    };
    text.lines().map(whole).collect()
}

/// Reads a field.
///
/// # Safety
/// There is a `T` at `object + offset`.
unsafe fn field<T: Copy>(object: usize, offset: usize) -> T {
    // SAFETY: the caller vouches for it.
    unsafe { ((object + offset) as *const T).read_unaligned() }
}

impl Interpreter {
    /// Writes the frames of the calling thread, as far as there is room; returns whether these are all.
    ///
    /// # Safety
    /// The layout is that of the process's interpreter.
    unsafe fn dump(&self, text: &mut Text<'_>) -> bool {
        let layout = &self.layout;
        // SAFETY: the state is null for a thread that is not Python's. Else it and its frames, which only this thread
        // changes, are objects of the layout.
        unsafe {
            let thread = (self.thread_state)() as usize;
            if thread == 0 {
                return true;
            }
            let mut frame: usize = field(thread, layout.current);
            if let Some(inner) = layout.current_inner
                && frame != 0
            {
                frame = field(frame, inner);
            }
            let (mut written, mut file) = (0, 0);
            while frame != 0 {
                if let Some(code) = self.code(frame) {
                    let whole = text.length;
                    let before = std::mem::replace(&mut file, field(code, layout.file_name));
                    let is_same = before == file;
                    if written == MOST_FRAMES || self.describe(frame, code, is_same, text).is_none()
                    {
                        text.length = whole;
                        return false;
                    }
                    written += 1;
                }
                frame = field(frame, layout.previous);
            }
            true
        }
    }

    /// The code object of a frame that executes Python code.
    ///
    /// # Safety
    /// `frame` is a frame of the calling thread.
    unsafe fn code(&self, frame: usize) -> Option<usize> {
        // SAFETY: the frame has these fields; what it executes is an object.
        unsafe {
            if field::<u8>(frame, self.layout.owner) >= self.layout.first_foreign_owner {
                return None;
            }
            let executable = field::<usize>(frame, self.layout.executable) & !layout::TAGS;
            let is_code = executable != 0
                && field::<usize>(executable, self.layout.object_type) == self.code_type;
            is_code.then_some(executable)
        }
    }

    /// Writes a frame's line; `None` if there is no room. `is_same`: its file is that of the frame before it.
    ///
    /// # Safety
    /// `frame` is a frame of the calling thread that executes `code`.
    unsafe fn describe(
        &self,
        frame: usize,
        code: usize,
        is_same: bool,
        text: &mut Text<'_>,
    ) -> Option<()> {
        let layout = &self.layout;
        // SAFETY: the code object has these fields, which never change; names are strings, and the table is bytes.
        unsafe {
            let table: usize = field(code, layout.line_table);
            let length: usize = field(table, layout.object_size);
            let table = std::slice::from_raw_parts((table + layout.bytes) as *const u8, length);
            let instruction: usize = field(frame, layout.instruction);
            let offset = instruction.wrapping_sub(self.instructions(frame, code));
            let line = lines::line(table, field::<i32>(code, layout.first_line), offset);
            if is_same {
                text.push_bytes(SAME_FILE.as_bytes())?;
            } else {
                text.push_bytes(b"File \"")?;
                self.name(field(code, layout.file_name), text)?;
            }
            text.push_bytes(b"\", line ")?;
            text.push_number(line)?;
            text.push_bytes(b" in ")?;
            self.name(field(code, layout.name), text)?;
            text.push_bytes(b"\n")
        }
    }

    /// The address of the instructions that a frame executes.
    ///
    /// # Safety
    /// `frame` is a frame of the calling thread that executes `code`.
    unsafe fn instructions(&self, frame: usize, code: usize) -> usize {
        let Some((number, copies)) = self.layout.copies else {
            return code + self.layout.instructions;
        };
        // SAFETY: the frame and the code object have these fields. The array begins with its length, and has the copies up to
        // the frame's; an array that is replaced is freed later.
        unsafe {
            let copies: usize = field(code, copies);
            field(copies, 8 * (1 + field::<i32>(frame, number) as usize))
        }
    }

    /// Writes a string; `None` if there is no room.
    ///
    /// # Safety
    /// `string` is a string object of the interpreter.
    unsafe fn name(&self, string: usize, text: &mut Text<'_>) -> Option<()> {
        // SAFETY: a compact string has its characters behind its header, of the size that its state names.
        unsafe {
            let length: usize = field(string, self.layout.object_size);
            let state = self.layout.string_state(string);
            if !state.is_compact() {
                return text.push_bytes(b"?");
            }
            let header = self.layout.string_header(state);
            if state.is_ascii() {
                let bytes = std::slice::from_raw_parts((string + header) as *const u8, length);
                return text.push_bytes(bytes);
            }
            let width = state.width();
            (0..length).try_for_each(|index| {
                let at = header + index * width;
                let character = match width {
                    1 => u32::from(field::<u8>(string, at)),
                    2 => u32::from(field::<u16>(string, at)),
                    _ => field(string, at),
                };
                text.push_char(char::from_u32(character).unwrap_or('?'))
            })
        }
    }
}

/// A text in a buffer. What does not fit is refused, with `None`.
struct Text<'a> {
    text: &'a mut [u8],
    length: usize,
}

impl Text<'_> {
    fn push_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.length + bytes.len();
        self.text.get_mut(self.length..end)?.copy_from_slice(bytes);
        self.length = end;
        Some(())
    }

    fn push_char(&mut self, character: char) -> Option<()> {
        self.push_bytes(character.encode_utf8(&mut [0; 4]).as_bytes())
    }

    fn push_number(&mut self, number: u32) -> Option<()> {
        if number >= 10 {
            self.push_number(number / 10)?;
        }
        self.push_bytes(&[b'0' + (number % 10) as u8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_refuses_what_does_not_fit() {
        let mut buffer = [0; 8];
        let mut text = Text {
            text: &mut buffer,
            length: 0,
        };
        assert!(text.push_number(1203).is_some());
        assert!(text.push_char('é').is_some());
        assert!(text.push_bytes(b"abc").is_none());
        assert!(text.push_bytes(b"ab").is_some());
        assert_eq!(frames(&buffer), ["1203éab"]);
    }

    #[test]
    fn a_file_is_named_once() {
        let text =
            b"File \"a\", line 1\", line 2 in f\n=\", line 3 in g\nFile \"b\", line 4 in h\n";
        let names = [
            "File \"a\", line 1\", line 2 in f",
            "File \"a\", line 1\", line 3 in g",
            "File \"b\", line 4 in h",
        ];
        assert_eq!(frames(text), names);
    }

    #[test]
    fn there_is_no_interpreter_here() {
        find();
        assert_eq!(dump(&mut [0; 100]), 0);
    }
}
