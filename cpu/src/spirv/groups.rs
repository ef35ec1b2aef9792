//! What the work-items of a group do together in a kernel: whether they wait for each other, and whether they use sub-groups.

use std::collections::{HashMap, HashSet};

use spirv::Op;

/// The operations of groups in each function, and the calls of all functions.
#[derive(Default)]
pub struct Groups {
    waits: HashSet<u32>,
    sub_groups: HashSet<u32>,
    calls: HashMap<u32, Vec<u32>>,
}

impl Groups {
    /// Notes an operation in the body of a function.
    pub fn note(&mut self, function: u32, op: Op) {
        let code = op as u32;
        let of_group = (Op::GroupAsyncCopy as u32..=Op::GroupSMax as u32).contains(&code);
        let of_sub_group =
            (Op::GroupNonUniformElect as u32..=Op::GroupNonUniformQuadSwap as u32).contains(&code);
        if op == Op::ControlBarrier || of_group || of_sub_group {
            self.waits.insert(function);
        }
        if of_sub_group {
            self.sub_groups.insert(function);
        }
    }

    /// Notes a call in the body of a function.
    pub fn note_call(&mut self, function: u32, called: u32) {
        self.calls.entry(function).or_default().push(called);
    }

    /// Whether the work-items of a group wait for each other in a function, or in one that it calls, directly or not: by barriers,
    /// or by operations of the group.
    pub fn wait_in(&self, function: u32) -> bool {
        self.reaches(&self.waits, function)
    }

    /// Whether a function, or one that it calls, has operations of a sub-group (`OpGroupNonUniform*`):
    /// elections, votes, shuffles, reductions.
    pub fn use_sub_groups_in(&self, function: u32) -> bool {
        self.reaches(&self.sub_groups, function)
    }

    fn reaches(&self, wanted: &HashSet<u32>, function: u32) -> bool {
        let (mut seen, mut next) = (HashSet::from([function]), vec![function]);
        while let Some(function) = next.pop() {
            if wanted.contains(&function) {
                return true;
            }
            let called = self.calls.get(&function).into_iter().flatten();
            next.extend(called.filter(|called| seen.insert(**called)));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_in_functions_that_are_called() {
        let mut groups = Groups::default();
        groups.note(1, Op::Load);
        groups.note_call(1, 2);
        // Recursion is not allowed, but must not hang.
        groups.note_call(2, 1);
        groups.note_call(4, 1);
        groups.note(3, Op::ControlBarrier);
        assert!(![1, 2, 4].iter().any(|&id| groups.wait_in(id)));
        groups.note_call(2, 3);
        assert!([1, 2, 3, 4].iter().all(|&id| groups.wait_in(id)));
        groups.note(5, Op::GroupIAdd);
        assert!(groups.wait_in(5) && !groups.wait_in(6));
        groups.note(7, Op::GroupNonUniformShuffle);
        assert!(groups.use_sub_groups_in(7) && groups.wait_in(7) && !groups.use_sub_groups_in(5));
    }
}
