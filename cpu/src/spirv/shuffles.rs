//! Shuffles of the values of a sub-group's work-items.
//!
//! Intel's OpenCL for processors moves `OpGroupNonUniformShuffle*` into a branch that only some of the work-items take, where the
//! values of the others are missing (seen with 2024.2, 2025.1, 2025.3 and 2026). The operations of `SPV_INTEL_subgroups` stay where
//! they are, and have the same result wherever the former have one.
//!
//! Source: SPIR-V specification, section 3.49.24 (non-uniform instructions); `SPV_INTEL_subgroups`.

use std::collections::HashSet;

use spirv::{Capability, Op};

use super::words::{Instruction, Words};

/// The declarations of the extension's capability and of the extension, by its name as a literal string.
const DECLARATIONS: [u32; 8] = [
    2 << 16 | Op::Capability as u32,
    Capability::SubgroupShuffleINTEL as u32,
    6 << 16 | Op::Extension as u32,
    u32::from_le_bytes(*b"SPV_"),
    u32::from_le_bytes(*b"INTE"),
    u32::from_le_bytes(*b"L_su"),
    u32::from_le_bytes(*b"bgro"),
    u32::from_le_bytes(*b"ups\0"),
];

/// The shuffles of a module.
#[derive(Default)]
pub struct Shuffles {
    /// The types of truth values and of their vectors, which the extension does not shuffle.
    truths: HashSet<u32>,
    /// Where each shuffle is, and what replaces it, of the same length.
    found: Vec<(usize, Vec<u32>)>,
}

impl Shuffles {
    /// Looks at the next instruction.
    pub fn note(&mut self, op: Op, instruction: &Instruction) {
        let replaced = match (op, instruction.operands) {
            (Op::TypeBool, [kind]) => {
                self.truths.insert(*kind);
                return;
            }
            (Op::TypeVector, [kind, of, _]) if self.truths.contains(of) => {
                self.truths.insert(*kind);
                return;
            }
            (_, [kind, ..]) if self.truths.contains(kind) => return,
            (Op::GroupNonUniformShuffle, &[kind, result, _, value, lane]) => {
                same(Op::SubgroupShuffleINTEL, [kind, result, value, lane])
            }
            (Op::GroupNonUniformShuffleXor, &[kind, result, _, value, mask]) => {
                same(Op::SubgroupShuffleXorINTEL, [kind, result, value, mask])
            }
            (Op::GroupNonUniformShuffleUp, &[kind, result, _, value, by]) => {
                relative(Op::SubgroupShuffleUpINTEL, [kind, result, value, value, by])
            }
            (Op::GroupNonUniformShuffleDown, &[kind, result, _, value, by]) => relative(
                Op::SubgroupShuffleDownINTEL,
                [kind, result, value, value, by],
            ),
            _ => return,
        };
        self.found.push((instruction.at, replaced));
    }

    /// Replaces the shuffles.
    pub fn replace(&self, words: &mut Words) {
        for (at, instruction) in &self.found {
            words.replace(*at, instruction);
        }
    }

    /// What a module with replaced shuffles declares, behind its capabilities.
    pub fn declarations(&self) -> &'static [u32] {
        if self.found.is_empty() {
            &[]
        } else {
            &DECLARATIONS
        }
    }
}

/// A shuffle, and a word that does nothing in the place of the scope, which it does not name.
fn same(op: Op, operands: [u32; 4]) -> Vec<u32> {
    let first = [5 << 16 | op as u32];
    [&first[..], &operands, &[1 << 16 | Op::Nop as u32]].concat()
}

/// A shuffle by a distance. It names the values beyond the end of the sub-group, which the replaced one leaves undefined.
fn relative(op: Op, operands: [u32; 5]) -> Vec<u32> {
    [&[6 << 16 | op as u32][..], &operands].concat()
}
