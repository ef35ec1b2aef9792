//! Whether the work-items of a group wait for each other in a kernel: by barriers, or by operations of the group.

use std::collections::{HashMap, HashSet};

use spirv::Op;

/// The functions with barriers, and the calls of all functions.
#[derive(Default)]
pub struct Barriers {
    functions: HashSet<u32>,
    calls: HashMap<u32, Vec<u32>>,
}

impl Barriers {
    /// Notes an operation in the body of a function.
    pub fn note(&mut self, function: u32, op: Op) {
        if is_barrier(op) {
            self.functions.insert(function);
        }
    }

    /// Notes a call in the body of a function.
    pub fn note_call(&mut self, function: u32, called: u32) {
        self.calls.entry(function).or_default().push(called);
    }

    /// Whether a function has a barrier, or one that it calls, directly or not.
    pub fn are_reached_from(&self, function: u32) -> bool {
        let (mut seen, mut next) = (HashSet::from([function]), vec![function]);
        while let Some(function) = next.pop() {
            if self.functions.contains(&function) {
                return true;
            }
            let called = self.calls.get(&function).into_iter().flatten();
            next.extend(called.filter(|called| seen.insert(**called)));
        }
        false
    }
}

fn is_barrier(op: Op) -> bool {
    let code = op as u32;
    op == Op::ControlBarrier
        || (Op::GroupAsyncCopy as u32..=Op::GroupSMax as u32).contains(&code)
        || (Op::GroupNonUniformElect as u32..=Op::GroupNonUniformQuadSwap as u32).contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_are_found_in_functions_that_are_called() {
        let mut barriers = Barriers::default();
        barriers.note(1, Op::Load);
        barriers.note_call(1, 2);
        // Recursion is not allowed, but must not hang.
        barriers.note_call(2, 1);
        barriers.note_call(4, 1);
        barriers.note(3, Op::ControlBarrier);
        assert!(![1, 2, 4].iter().any(|&id| barriers.are_reached_from(id)));
        barriers.note_call(2, 3);
        assert!([1, 2, 3, 4].iter().all(|&id| barriers.are_reached_from(id)));
        barriers.note(5, Op::GroupIAdd);
        assert!(barriers.are_reached_from(5) && !barriers.are_reached_from(6));
    }
}
