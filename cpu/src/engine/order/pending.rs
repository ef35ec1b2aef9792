//! The changes of a signal that submitted commands are to make, counted.

/// A change of a signal by a command.
#[derive(Clone, Copy)]
pub struct Change {
    /// Whether it sets the signal, or resets it.
    pub sets: bool,
    /// Whether the command is in an engine.
    pub in_engine: bool,
}

/// The pending changes of a signal: their commands have been submitted, and are neither complete nor dropped.
///
/// Those of commands in engines are made in the order in which they were added: an engine is in order, and where commands in
/// different engines change the same signal, a correct program lets one wait for the other, and commands in engines wait for
/// earlier ones only. So while there are any, the one that was added last is pending, and decides how the signal is left. The
/// commands that are in no engine may be complete at any time.
#[derive(Default)]
pub struct Pending {
    /// How many commands in engines change it.
    in_engines: usize,
    /// Whether the last of them sets it.
    last_sets: bool,
    /// How many commands that are in no engine reset it.
    other_resets: usize,
}

impl Pending {
    /// Adds a change.
    pub fn add(&mut self, change: Change) {
        if change.in_engine {
            self.in_engines += 1;
            self.last_sets = change.sets;
        } else {
            self.other_resets += usize::from(!change.sets);
        }
    }

    /// Removes a change, which is being made or never will be.
    pub fn remove(&mut self, change: Change) {
        if change.in_engine {
            self.in_engines -= 1;
        } else {
            self.other_resets -= usize::from(!change.sets);
        }
    }

    /// Whether the signal, which is now `set` or not, is set once all commands in engines are complete, whatever the others do.
    pub fn leave_set(&self, set: bool) -> bool {
        let after_engines = if self.in_engines > 0 {
            self.last_sets
        } else {
            set
        };
        after_engines && self.other_resets == 0
    }
}
