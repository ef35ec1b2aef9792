//! Functions that the program may call by their addresses (`zeModuleGetFunctionPointer`).

use std::collections::HashSet;

use spirv::{Capability, Decoration, LinkageType, Op};

use super::words::{Instruction, encoded};

/// The exported functions of a module with function pointers. The compiler removes those that no kernel of the module refers
/// to, unless they are decorated as called indirectly.
#[derive(Default)]
pub struct Exports {
    has_pointers: bool,
    /// Where the first decoration is.
    at: Option<usize>,
    exported: Vec<u32>,
    decorated: HashSet<u32>,
}

impl Exports {
    /// Looks at the next instruction.
    pub fn note(&mut self, op: Op, instruction: &Instruction) {
        match (op, instruction.operands) {
            (Op::Capability, [capability]) => {
                self.has_pointers |= *capability == Capability::FunctionPointersINTEL as u32;
            }
            (Op::Decorate, &[target, decoration, ref operands @ ..]) => {
                self.at.get_or_insert(instruction.at);
                if decoration == Decoration::ReferencedIndirectlyINTEL as u32 {
                    self.decorated.insert(target);
                } else if decoration == Decoration::LinkageAttributes as u32
                    && operands.last() == Some(&(LinkageType::Export as u32))
                {
                    self.exported.push(target);
                }
            }
            _ => {}
        }
    }

    /// The decorations that are missing, and the place for them. `is_function` tells functions from variables.
    pub fn decorations(&self, is_function: impl Fn(u32) -> bool) -> Option<(usize, Vec<u32>)> {
        let missing = self.exported.iter().copied();
        let missing = missing.filter(|id| !self.decorated.contains(id) && is_function(*id));
        let indirectly = Decoration::ReferencedIndirectlyINTEL as u32;
        let decorate = |target| encoded(Op::Decorate, &[target, indirectly]);
        let at = self.at.filter(|_| self.has_pointers)?;
        Some((at, missing.flat_map(decorate).collect()))
    }
}
