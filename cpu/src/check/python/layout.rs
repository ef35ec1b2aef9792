//! Where the fields of CPython's structures are.
//!
//! From 3.13 on the interpreter tells it by a table for debuggers at the beginning of `_PyRuntime`, whose own layout is that
//! of a minor version. The structures of 3.11 and 3.12 are fixed, and so are those of objects. Free-threaded interpreters have
//! longer headers of objects, and of a code object a copy of its instructions for each thread; those of 3.14 are known.

/// The bits of a reference to an object that are no part of the address.
pub const TAGS: usize = 7;

/// The offsets of the fields that a stack is read from.
#[derive(Debug)]
pub struct Layout {
    /// In a thread's state: the innermost frame, or what refers to it.
    pub current: usize,
    /// In that: the innermost frame.
    pub current_inner: Option<usize>,
    /// In a frame: the frame that called it.
    pub previous: usize,
    /// In a frame: what it executes.
    pub executable: usize,
    /// In a frame: the instruction that it executes.
    pub instruction: usize,
    /// In a frame: who owns it.
    pub owner: usize,
    /// From this owner on, a frame is the interpreter's own.
    pub first_foreign_owner: u8,
    /// In a code object.
    pub file_name: usize,
    /// In a code object.
    pub name: usize,
    /// In a code object: the bytes that map instructions to lines.
    pub line_table: usize,
    /// In a code object: the line of its definition, 4 bytes.
    pub first_line: usize,
    /// In a code object: its instructions.
    pub instructions: usize,
    /// In a frame and in a code object: the number of the thread's copy of the instructions, 4 bytes, and the array of those.
    pub copies: Option<(usize, usize)>,
    /// An object's type.
    pub object_type: usize,
    /// The size of an object of variable size; a string's length.
    pub object_size: usize,
    /// The bytes of a bytes object.
    pub bytes: usize,
    /// How a string's characters are stored, 4 bytes.
    string_state: usize,
    /// The first bit of that.
    state_bit: u32,
    /// The header of an ASCII string.
    ascii_header: usize,
    /// The header of another string.
    header: usize,
}

impl Layout {
    /// The layout of a version, in CPython's notation, with this runtime; `None` if it is not known.
    ///
    /// # Safety
    /// `runtime` is the address of that interpreter's `_PyRuntime`.
    pub unsafe fn of(version: u64, runtime: usize) -> Option<Self> {
        match version >> 16 {
            0x30b => Some(Self::of_3_11()),
            0x30c => Some(Self::of_3_12()),
            // SAFETY: from 3.13 on, the runtime begins with a table of offsets, longer than what is read.
            0x30d => unsafe { Self::told(version, runtime, [23, 28, 34]) },
            // SAFETY: as above.
            0x30e => unsafe { Self::told(version, runtime, [26, 31, 39]) },
            _ => None,
        }
    }

    fn of_3_11() -> Self {
        Self {
            current: 56,
            current_inner: Some(8),
            previous: 48,
            executable: 32,
            instruction: 56,
            owner: 69,
            first_foreign_owner: 3,
            file_name: 112,
            name: 120,
            line_table: 136,
            first_line: 72,
            instructions: 184,
            copies: None,
            object_type: 8,
            object_size: 16,
            bytes: 32,
            string_state: 32,
            state_bit: 2,
            ascii_header: 48,
            header: 72,
        }
    }

    fn of_3_12() -> Self {
        Self {
            current_inner: Some(0),
            previous: 8,
            executable: 0,
            owner: 70,
            first_line: 68,
            instructions: 192,
            ascii_header: 40,
            header: 56,
            ..Self::of_3_11()
        }
    }

    /// What the interpreter tells; the words at which it does: a thread's current frame, a frame, a code object.
    ///
    /// # Safety
    /// `runtime` is the address of a runtime that begins with such a table.
    unsafe fn told(
        version: u64,
        runtime: usize,
        [current, frame, code]: [usize; 3],
    ) -> Option<Self> {
        // SAFETY: the caller vouches for the table.
        let word = |index: usize| unsafe { super::field::<u64>(runtime, 8 * index) };
        let is_known = word(0).to_le_bytes() == *b"xdebugpy" && word(1) == version;
        let is_free_threaded = word(2) != 0;
        if !is_known || (is_free_threaded && version >> 16 < 0x30e) {
            return None;
        }
        let offset = |index: usize| word(index) as usize;
        let objects = if is_free_threaded {
            Self::of_free_threaded_3_14(offset(frame + 7), offset(code + 10))
        } else {
            Self::of_3_12()
        };
        Some(Self {
            current: offset(current),
            current_inner: None,
            previous: offset(frame + 1),
            executable: offset(frame + 2),
            instruction: offset(frame + 3),
            owner: offset(frame + 5),
            file_name: offset(code + 1),
            name: offset(code + 2),
            line_table: offset(code + 4),
            first_line: offset(code + 5),
            instructions: offset(code + 9),
            ..objects
        })
    }

    /// With the places of the copies of the instructions.
    fn of_free_threaded_3_14(number: usize, copies: usize) -> Self {
        Self {
            copies: Some((number, copies)),
            object_type: 24,
            object_size: 32,
            bytes: 48,
            string_state: 48,
            state_bit: 8,
            ascii_header: 56,
            header: 72,
            ..Self::of_3_12()
        }
    }

    /// How a string's characters are stored.
    ///
    /// # Safety
    /// `string` is a string object of the interpreter.
    pub unsafe fn string_state(&self, string: usize) -> StringState {
        // SAFETY: a string has this field.
        StringState(unsafe { super::field::<u32>(string, self.string_state) } >> self.state_bit)
    }

    /// The length of a string's header.
    pub fn string_header(&self, state: StringState) -> usize {
        if state.is_ascii() {
            self.ascii_header
        } else {
            self.header
        }
    }
}

/// How a string's characters are stored.
#[derive(Clone, Copy, Debug)]
pub struct StringState(u32);

impl StringState {
    /// Bytes of a character.
    pub fn width(self) -> usize {
        (self.0 & 7) as usize
    }

    /// Whether the characters are behind the header.
    pub fn is_compact(self) -> bool {
        self.0 >> 3 & 1 != 0
    }

    /// Whether all are ASCII.
    pub fn is_ascii(self) -> bool {
        self.0 >> 4 & 1 != 0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_interpreter_is_left_out() {
        let mut table = [0_u64; 64];
        for (index, word) in table.iter_mut().enumerate() {
            *word = index as u64;
        }
        let (version, other) = (0x30d_00f0, 0x30d_01f0);
        let of = |version, table: &[u64; 64]| {
            // SAFETY: the table is long enough.
            unsafe { Layout::of(version, table.as_ptr() as usize) }
        };
        assert!(of(version, &table).is_none());
        table[0] = u64::from_le_bytes(*b"xdebugpy");
        (table[1], table[2]) = (version, 0);
        let layout = of(version, &table).unwrap();
        assert_eq!(
            (layout.current, layout.owner, layout.instructions),
            (23, 33, 43)
        );
        assert!(of(other, &table).is_none());
        table[2] = 1;
        assert!(of(version, &table).is_none());
        table[1] = 0x30e_07f0;
        let layout = of(0x30e_07f0, &table).unwrap();
        assert_eq!((layout.copies, layout.object_type), (Some((38, 49)), 24));
        assert!(of(0x30a_00f0, &table).is_none());
        assert!(of(0x30f_00f0, &table).is_none());
    }
}
