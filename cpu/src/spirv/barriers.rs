//! Barriers of sub-groups in branches that not all sub-groups of a work-group take.
//!
//! Intel's OpenCL for processors gives wrong results for them (seen with 2026.2). It executes a full sub-group as one vector, so
//! that only the order of its memory accesses is left to keep, by a memory barrier. Sub-groups that are not full have no such vector, so
//! this is for kernels that name sizes by which all of them are.
//!
//! Source: SPIR-V specification, section 3.49.20 (barriers).

use std::collections::HashMap;

use spirv::{ExecutionMode, Op, Scope};

use super::words::{Edits, Words, encoded};

/// The module with memory barriers in place of the barriers of sub-groups, if the sub-groups of all its kernels are full.
///
/// # Errors
/// For bytes that are not SPIR-V.
pub fn in_order(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let words = Words::read(bytes)?;
    let (mut kernels, mut groups) = (Vec::new(), HashMap::new());
    let (mut sub_groups, mut constants) = (HashMap::new(), HashMap::new());
    let mut edits = Edits::default();
    for instruction in words.instructions() {
        let instruction = instruction?;
        match (instruction.op(), instruction.operands) {
            (Some(Op::EntryPoint), [_, kernel, ..]) => kernels.push(*kernel),
            (Some(Op::ExecutionMode), [kernel, mode, size, ..]) => {
                match ExecutionMode::from_u32(*mode) {
                    Some(ExecutionMode::LocalSize) => groups.insert(*kernel, *size),
                    Some(ExecutionMode::SubgroupSize) => sub_groups.insert(*kernel, *size),
                    _ => None,
                };
            }
            (Some(Op::Constant), [_, constant, value]) => {
                constants.insert(*constant, *value);
            }
            (Some(Op::ControlBarrier), [execution, memory, semantics])
                if constants.get(execution) == Some(&(Scope::Subgroup as u32)) =>
            {
                edits.replace(
                    &instruction,
                    encoded(Op::MemoryBarrier, &[*memory, *semantics]),
                );
            }
            _ => {}
        }
    }
    let is_full = |kernel: &u32| match (groups.get(kernel), sub_groups.get(kernel)) {
        (Some(group), Some(sub_group)) => group.checked_rem(*sub_group) == Some(0),
        _ => false,
    };
    if !kernels.iter().all(is_full) {
        edits = Edits::default();
    }
    let bound = words.bound();
    Ok(words.changed(edits, bound).to_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A kernel with the sizes of a group and of its sub-groups, and a barrier of a scope.
    fn module(group: u32, sub_group: u32, scope: Scope) -> Vec<u8> {
        let size = |mode: ExecutionMode| mode as u32;
        let code = [
            vec![spirv::MAGIC_NUMBER, 0x10000, 0, 9, 0],
            encoded(Op::EntryPoint, &[6, 1, 0x6b]),
            encoded(
                Op::ExecutionMode,
                &[1, size(ExecutionMode::LocalSize), group, 1, 1],
            ),
            encoded(
                Op::ExecutionMode,
                &[1, size(ExecutionMode::SubgroupSize), sub_group],
            ),
            encoded(Op::Constant, &[2, 3, scope as u32]),
            encoded(Op::ControlBarrier, &[3, 3, 4]),
        ];
        code.concat()
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect()
    }

    #[test]
    fn only_barriers_of_full_sub_groups_are_replaced() {
        let has_barrier = |code: &[u8]| {
            let words = Words::read(&in_order(code).unwrap_or_default()).unwrap();
            let mut ops = words.instructions().map(|it| it.unwrap().op());
            ops.any(|op| op == Some(Op::ControlBarrier))
        };
        assert!(!has_barrier(&module(32, 16, Scope::Subgroup)));
        assert!(has_barrier(&module(40, 16, Scope::Subgroup)));
        assert!(has_barrier(&module(32, 16, Scope::Workgroup)));
    }
}
