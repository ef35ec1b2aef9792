//! The physical layer: bytes to words in this machine's order, words to instructions.

use std::ops::Range;

use spirv::Op;

/// Words in a module's header: magic number, version, generator, bound, schema.
pub const HEADER: usize = 5;
/// Where the header has the bound of the ids.
const BOUND: usize = 3;

/// A module's words in the machine's byte order, with a valid header.
pub struct Words(Vec<u32>);

impl Words {
    /// Reads `bytes`, in whichever byte order the magic number shows.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let (chunks, rest) = bytes.as_chunks::<4>();
        if chunks.len() < HEADER || !rest.is_empty() {
            return Err(format!(
                "{} bytes are not a SPIR-V module: it has a header of 20 bytes and is made of 4-byte words",
                bytes.len()
            ));
        }
        let words = chunks.iter().map(|&word| u32::from_ne_bytes(word));
        match u32::from_ne_bytes(chunks[0]) {
            spirv::MAGIC_NUMBER => Ok(Self(words.collect())),
            magic if magic.swap_bytes() == spirv::MAGIC_NUMBER => {
                Ok(Self(words.map(u32::swap_bytes).collect()))
            }
            found => Err(format!(
                "not SPIR-V: the first word is {found:#010x}, not the magic number 0x07230203"
            )),
        }
    }

    /// Every id of the module is below this.
    pub fn bound(&self) -> u32 {
        self.0[BOUND]
    }

    /// The module's bytes in the machine's byte order, as a compiler wants them.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// These words with the changes, and with ids below `bound`.
    pub fn changed(&self, mut edits: Edits, bound: u32) -> Self {
        edits.0.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut words, mut copied) = (Vec::with_capacity(self.0.len()), 0);
        for (range, instructions) in edits.0 {
            words.extend_from_slice(self.0.get(copied..range.start).unwrap_or_default());
            words.extend(instructions);
            copied = range.end;
        }
        words.extend_from_slice(self.0.get(copied..).unwrap_or_default());
        if let Some(place) = words.get_mut(BOUND) {
            *place = bound;
        }
        Self(words)
    }

    /// The instructions after the header, in order; ends after the first malformed one.
    pub fn instructions(&self) -> Instructions<'_> {
        Instructions {
            words: &self.0,
            at: HEADER,
        }
    }
}

/// Changes of a module, by places in it as it was.
#[derive(Default)]
pub struct Edits(Vec<(Range<usize>, Vec<u32>)>);

impl Edits {
    /// Inserts whole instructions before the one at `at`.
    pub fn insert(&mut self, at: usize, instructions: Vec<u32>) {
        self.0.push((at..at, instructions));
    }

    /// Replaces an instruction, by none if `instructions` is empty.
    pub fn replace(&mut self, instruction: &Instruction, instructions: Vec<u32>) {
        self.0
            .push((instruction.at..instruction.end(), instructions));
    }
}

/// The words of an instruction.
pub fn encoded(op: Op, operands: &[u32]) -> Vec<u32> {
    let count = u32::try_from(operands.len() + 1).unwrap_or(u32::MAX);
    [&[count << 16 | op as u32], operands].concat()
}

/// The declaration of an extension, by its name as a literal string.
pub fn extension(name: &str) -> Vec<u32> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((bytes.len() / 4 + 1) * 4, 0);
    let (chunks, _) = bytes.as_chunks::<4>();
    let text: Vec<u32> = chunks.iter().copied().map(u32::from_le_bytes).collect();
    encoded(Op::Extension, &text)
}

/// The iterator of [`Words::instructions`].
pub struct Instructions<'a> {
    words: &'a [u32],
    at: usize,
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.words.get(self.at..)?;
        let &[first, ..] = rest else { return None };
        let (count, opcode) = ((first >> 16) as usize, (first & 0xffff) as u16);
        let mut instruction = Instruction {
            at: self.at,
            opcode,
            operands: &[],
        };
        match rest.get(..count).and_then(<[u32]>::split_first) {
            Some((_, operands)) => {
                self.at += count;
                instruction.operands = operands;
                Some(Ok(instruction))
            }
            None => {
                self.at = self.words.len();
                Some(Err(instruction.malformed()))
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
    pub fn operand(&self, index: usize) -> Result<u32, String> {
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
    pub fn text(&self, index: usize) -> Result<String, String> {
        let mut bytes: Vec<u8> = self
            .rest(index)
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let end = bytes.iter().position(|&byte| byte == 0);
        bytes.truncate(end.ok_or_else(|| self.malformed())?);
        String::from_utf8(bytes).map_err(|_| self.malformed())
    }

    /// The error for a malformed instruction.
    pub fn malformed(&self) -> String {
        let (at, opcode) = (self.at, self.opcode);
        format!("the instruction at word {at} (opcode {opcode}) is cut short or malformed")
    }

    /// The error for an id that is not what the instruction needs.
    pub fn misused(&self, id: u32, expected: &str) -> String {
        format!("id {id}, used at word {}, is not {expected}", self.at)
    }
}
