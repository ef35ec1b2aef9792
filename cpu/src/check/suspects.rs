//! Conflicts of commands of which one cannot run yet. They are races if the two are still in no order when both can run.

use super::uses::Set;

/// The conflicts that are not decided yet.
#[derive(Default)]
pub struct Suspects(Vec<Suspect>);

/// Two commands that access the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The numbers of the commands, the later one first.
    pub pair: [u64; 2],
    /// The first of these bytes.
    pub address: usize,
}

impl Suspects {
    /// The most conflicts that are kept; the oldest are forgotten.
    const MOST: usize = 512;

    /// One more.
    pub fn add(&mut self, suspect: Suspect) {
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push(suspect);
    }

    /// All of `after` follow all of `before` now, so that these are in order.
    pub fn follow(&mut self, after: &Set, before: &Set) {
        self.0.retain(|Suspect { pair: [a, b], .. }| {
            let is_ordered = |a, b| after.contains(a) && before.contains(b);
            !is_ordered(a, b) && !is_ordered(b, a)
        });
    }

    /// The host has waited for commands, and so ordered them before all that could not run: the others are kept.
    pub fn retain_pending(&mut self, is_pending: impl Fn(u64) -> bool) {
        self.0
            .retain(|suspect| suspect.pair.into_iter().all(&is_pending));
    }

    /// Removes and returns those of which both commands can run.
    pub fn decide(&mut self, can_run: impl Fn(u64) -> bool) -> Vec<Suspect> {
        let is_decided = |suspect: &Suspect| suspect.pair.into_iter().all(&can_run);
        let decided = self.0.iter().copied().filter(is_decided).collect();
        self.0.retain(|suspect| !is_decided(suspect));
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspect(later: u64, earlier: u64) -> Suspect {
        Suspect {
            pair: [later, earlier],
            address: 0,
        }
    }

    #[test]
    fn commands_that_follow_one_another_are_no_suspects() {
        let mut suspects = Suspects::default();
        suspects.add(suspect(3, 1));
        suspects.add(suspect(3, 2));
        suspects.follow(&Set::from([1]), &Set::from([3, 4]));
        assert_eq!(suspects.decide(|_| true), [suspect(3, 2)]);
    }

    #[test]
    fn suspects_wait_until_both_can_run_or_one_is_complete() {
        let mut suspects = Suspects::default();
        suspects.add(suspect(3, 1));
        suspects.add(suspect(4, 2));
        assert!(suspects.decide(|number| number > 2).is_empty());
        suspects.retain_pending(|number| number != 2);
        assert_eq!(suspects.decide(|_| true), [suspect(3, 1)]);
        assert!(suspects.0.is_empty());
    }
}
