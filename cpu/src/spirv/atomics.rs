//! Whether a module has atomic operations that only OpenCL 2.0 has: on generic pointers, and on numbers of double precision.

use std::collections::HashSet;

use spirv::{Op, StorageClass};

use super::types::{Type, Types};
use super::words::Instruction;

/// The generic pointers of a module, and whether an atomic operation has one, or is on a double.
#[derive(Default)]
pub struct NewAtomics {
    pointers: HashSet<u32>,
    /// The types of double precision.
    doubles: HashSet<u32>,
    found: bool,
}

impl NewAtomics {
    /// Looks at the next instruction; `types` are those of the instructions before it.
    pub fn note(&mut self, op: Op, instruction: &Instruction, types: &Types) {
        let operand = |index: usize| instruction.operands.get(index).copied();
        if let Some(index) = pointer(op) {
            self.found |= operand(index).is_some_and(|id| self.pointers.contains(&id));
            let kind = operand(0).filter(|_| index == 2);
            self.found |= kind.is_some_and(|kind| self.doubles.contains(&kind));
        }
        if let (Op::TypeFloat, Some(kind), Some(64)) = (op, operand(0), operand(1)) {
            self.doubles.insert(kind);
        }
        // Most instructions begin with the type of their result and its id. Where another one has the id of a type in
        // that place, no pointer is meant, and the other id is none that an atomic operation could have.
        if let (Some(kind), Some(result)) = (operand(0), operand(1))
            && is_generic(types, kind)
        {
            self.pointers.insert(result);
        }
    }

    /// Whether there is such an operation.
    pub fn found(&self) -> bool {
        self.found
    }
}

fn is_generic(types: &Types, kind: u32) -> bool {
    let generic = StorageClass::Generic as u32;
    matches!(types.get(kind), Some(Type::Pointer { class, .. }) if *class == generic)
}

/// Which operand of an atomic operation is the pointer; `None` for other instructions.
fn pointer(op: Op) -> Option<usize> {
    match op {
        Op::AtomicStore | Op::AtomicFlagClear => Some(0),
        Op::AtomicLoad
        | Op::AtomicExchange
        | Op::AtomicCompareExchange
        | Op::AtomicCompareExchangeWeak
        | Op::AtomicIIncrement
        | Op::AtomicIDecrement
        | Op::AtomicIAdd
        | Op::AtomicISub
        | Op::AtomicSMin
        | Op::AtomicUMin
        | Op::AtomicSMax
        | Op::AtomicUMax
        | Op::AtomicAnd
        | Op::AtomicOr
        | Op::AtomicXor
        | Op::AtomicFlagTestAndSet
        | Op::AtomicFAddEXT
        | Op::AtomicFMinEXT
        | Op::AtomicFMaxEXT => Some(2),
        _ => None,
    }
}
