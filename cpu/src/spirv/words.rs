//! The physical layer: bytes to words in this machine's order, words to instructions.

use super::Error;

/// Words in a module's header: magic number, version, generator, bound, schema.
pub const HEADER: usize = 5;

/// A module's words in the machine's byte order, with a valid header.
pub struct Words(Vec<u32>);

impl Words {
    /// Reads `bytes`, in whichever byte order the magic number shows.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let (chunks, rest) = bytes.as_chunks::<4>();
        if chunks.len() < HEADER || !rest.is_empty() {
            return Err(Error::Size { bytes: bytes.len() });
        }
        let mut words: Vec<u32> = chunks
            .iter()
            .map(|&word| u32::from_ne_bytes(word))
            .collect();
        match words.first().copied() {
            Some(spirv::MAGIC_NUMBER) => {}
            Some(magic) if magic.swap_bytes() == spirv::MAGIC_NUMBER => {
                for word in &mut words {
                    *word = word.swap_bytes();
                }
            }
            found => {
                return Err(Error::Magic {
                    found: found.unwrap_or(0),
                });
            }
        }
        let words = Self(words);
        words.check_header()?;
        Ok(words)
    }

    /// Version, bound and schema as the specification's section 2.3 wants them.
    fn check_header(&self) -> Result<(), Error> {
        let fields = [
            (
                "version",
                self.version(),
                self.version() & 0xff00_00ff == 0 && self.version() >> 16 == 1,
            ),
            ("bound", self.bound(), self.bound() != 0),
            ("schema", self.word(4), self.word(4) == 0),
        ];
        match fields.into_iter().find(|(_, _, good)| !good) {
            Some((field, value, _)) => Err(Error::Header { field, value }),
            None => Ok(()),
        }
    }

    fn word(&self, at: usize) -> u32 {
        self.0.get(at).copied().unwrap_or(0)
    }

    /// The version word: `0x00MMmm00`.
    pub fn version(&self) -> u32 {
        self.word(1)
    }

    /// Every id of the module is below this.
    pub fn bound(&self) -> u32 {
        self.word(3)
    }

    /// The module's bytes in the machine's byte order, as a compiler wants them.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Inserts whole instructions before the one at `at`.
    pub fn insert(&mut self, at: usize, instructions: Vec<u32>) {
        self.0.splice(at..at, instructions);
    }

    /// Replaces words from `at` on.
    pub fn replace(&mut self, at: usize, words: &[u32]) {
        if let Some(place) = self.0.get_mut(at..at + words.len()) {
            place.copy_from_slice(words);
        }
    }

    /// The instructions after the header, in order; ends after the first malformed one.
    pub fn instructions(&self) -> Instructions<'_> {
        Instructions {
            words: &self.0,
            at: HEADER,
        }
    }
}

/// The iterator of [`Words::instructions`].
pub struct Instructions<'a> {
    words: &'a [u32],
    at: usize,
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.words.get(self.at..)?;
        let &[first, ..] = rest else { return None };
        let (count, opcode) = ((first >> 16) as usize, (first & 0xffff) as u16);
        let at = self.at;
        match rest.get(..count).and_then(<[u32]>::split_first) {
            Some((_, operands)) => {
                self.at += count;
                Some(Ok(Instruction {
                    at,
                    opcode,
                    operands,
                }))
            }
            None => {
                self.at = self.words.len();
                Some(Err(Error::Instruction { at, opcode }))
            }
        }
    }
}

/// One instruction: its place, its opcode, and the words after the first.
#[derive(Clone, Copy)]
pub struct Instruction<'a> {
    pub at: usize,
    pub opcode: u16,
    pub operands: &'a [u32],
}

impl<'a> Instruction<'a> {
    /// The opcode by name, where this crate's SPIR-V knows it.
    pub fn op(&self) -> Option<spirv::Op> {
        spirv::Op::from_u32(self.opcode.into())
    }

    /// Where the next instruction is.
    pub fn end(&self) -> usize {
        self.at + 1 + self.operands.len()
    }

    /// The operand at `index`, which the instruction must have.
    pub fn operand(&self, index: usize) -> Result<u32, Error> {
        self.operands
            .get(index)
            .copied()
            .ok_or_else(|| self.malformed())
    }

    /// The operands from `index` on, possibly none.
    pub fn rest(&self, index: usize) -> &'a [u32] {
        self.operands.get(index..).unwrap_or_default()
    }

    /// The literal string that starts at operand `index`.
    pub fn text(&self, index: usize) -> Result<String, Error> {
        let mut bytes: Vec<u8> = self
            .rest(index)
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let end = bytes.iter().position(|&byte| byte == 0);
        bytes.truncate(end.ok_or(Error::Text { at: self.at })?);
        String::from_utf8(bytes).map_err(|_| Error::Text { at: self.at })
    }

    /// The error for a malformed instruction.
    pub fn malformed(&self) -> Error {
        Error::Instruction {
            at: self.at,
            opcode: self.opcode,
        }
    }
}
