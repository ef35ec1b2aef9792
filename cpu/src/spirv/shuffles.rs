//! Shuffles of the values of a sub-group's work-items.
//!
//! Intel's OpenCL for processors moves `OpGroupNonUniformShuffle*` into a branch that only some of the work-items take, where the
//! values of the others are missing (seen with 2024.2, 2025.1, 2025.3 and 2026). The operations of `SPV_INTEL_subgroups` stay where
//! they are, and have the same result wherever the former have one.
//!
//! Source: SPIR-V specification, section 3.49.24 (non-uniform instructions); `SPV_INTEL_subgroups`.

use std::collections::HashSet;

use spirv::Op;

use super::words::{Edits, Instruction, encoded};

/// The shuffles of a module.
#[derive(Default)]
pub struct Shuffles {
    /// The types of truth values and of their vectors, which the extension does not shuffle.
    truths: HashSet<u32>,
    /// Whether some were replaced, so that the extension is to be declared.
    pub found: bool,
}

impl Shuffles {
    /// Looks at the next instruction, and replaces a shuffle. That by a distance names the values beyond the end of the sub-group,
    /// which the replaced one leaves undefined.
    pub fn note(&mut self, op: Op, instruction: &Instruction, edits: &mut Edits) {
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
                encoded(Op::SubgroupShuffleINTEL, &[kind, result, value, lane])
            }
            (Op::GroupNonUniformShuffleXor, &[kind, result, _, value, mask]) => {
                encoded(Op::SubgroupShuffleXorINTEL, &[kind, result, value, mask])
            }
            (Op::GroupNonUniformShuffleUp, &[kind, result, _, value, by]) => encoded(
                Op::SubgroupShuffleUpINTEL,
                &[kind, result, value, value, by],
            ),
            (Op::GroupNonUniformShuffleDown, &[kind, result, _, value, by]) => encoded(
                Op::SubgroupShuffleDownINTEL,
                &[kind, result, value, value, by],
            ),
            _ => return,
        };
        edits.replace(instruction, replaced);
        self.found = true;
    }
}
