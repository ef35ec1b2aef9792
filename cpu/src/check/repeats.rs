//! Accesses that repeat a reported one, as those of a loop in a function do: they are not reported again until the next
//! call of Level Zero. After many reports or repetitions, the pages of further accesses stay open until then, so that the loop ends in
//! time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::step;

/// As many accesses are reported, each of another place. A report takes a fraction of a second.
const MOST_REPORTS: usize = 100;
/// As many repetitions are stepped over.
const MOST_STEPS: usize = 1000;

/// The number of calls that begin or end commands, or allocate.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Level Zero was called.
pub fn note_call() {
    step::note_call();
    CALLS.fetch_add(1, Ordering::Relaxed);
}

/// The accesses that were reported since the last call: all of them, so that a loop over them repeats each.
#[derive(Default)]
pub struct Repeats {
    calls: usize,
    places: Vec<u64>,
    steps: usize,
}

/// What is to be done about an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Report,
    Step,
    /// Its pages stay open.
    Open,
    /// It is new, and counted, and its pages stay open.
    CountAndOpen,
}

impl Repeats {
    /// Decides about an access, given all that tells it from others.
    pub fn decide(&mut self, access: impl Hash) -> Answer {
        let calls = CALLS.load(Ordering::Relaxed);
        if self.calls != calls {
            *self = Self {
                calls,
                ..Self::default()
            };
        }
        let mut hasher = DefaultHasher::new();
        access.hash(&mut hasher);
        let place = hasher.finish();
        if self.places.contains(&place) {
            if self.steps == MOST_STEPS {
                return Answer::Open;
            }
            self.steps += 1;
            return Answer::Step;
        }
        if self.places.len() == MOST_REPORTS {
            return Answer::CountAndOpen;
        }
        self.places.push(place);
        Answer::Report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_stepped_over_until_there_are_many() {
        let mut repeats = Repeats::default();
        // Other tests call, too.
        let calls = CALLS.load(Ordering::Relaxed);
        let answers: Vec<_> = (0..2000).map(|index| repeats.decide(index % 20)).collect();
        if CALLS.load(Ordering::Relaxed) == calls {
            assert!(answers[..20].iter().all(|it| *it == Answer::Report));
            assert!(answers[20..1020].iter().all(|it| *it == Answer::Step));
            assert!(answers[1020..].iter().all(|it| *it == Answer::Open));
        }
        note_call();
        assert_eq!(repeats.decide(1), Answer::Report);
    }

    #[test]
    fn many_places_are_reported_once() {
        let mut repeats = Repeats::default();
        let calls = CALLS.load(Ordering::Relaxed);
        let all = MOST_REPORTS + 1;
        let answers: Vec<_> = (0..2 * all)
            .map(|index| repeats.decide(index % all))
            .collect();
        if CALLS.load(Ordering::Relaxed) == calls {
            let reported = &answers[..MOST_REPORTS];
            assert!(reported.iter().all(|it| *it == Answer::Report));
            assert_eq!(answers[MOST_REPORTS], Answer::CountAndOpen);
            assert_eq!(answers[all], Answer::Step);
        }
    }
}
