//! Priorities of streams: which of the ready commands is begun first.

use std::collections::VecDeque;

use level_zero_sys as sys;

/// The priority of a stream's commands, the highest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Before all others.
    High,
    /// As most are.
    #[default]
    Normal,
    /// After all others.
    Low,
}

impl From<sys::ze_command_queue_priority_t> for Priority {
    fn from(priority: sys::ze_command_queue_priority_t) -> Self {
        match priority {
            sys::ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH => Self::High,
            sys::ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW => Self::Low,
            _ => Self::Normal,
        }
    }
}

/// A queue that is first-in first-out among items of one priority.
pub struct ByPriority<T>([VecDeque<T>; 3]);

impl<T> ByPriority<T> {
    /// Appends an item.
    pub fn push(&mut self, priority: Priority, item: T) {
        self.0[priority as usize].push_back(item);
    }

    /// Removes the first item of the highest priority.
    pub fn pop(&mut self) -> Option<T> {
        self.0.iter_mut().find_map(VecDeque::pop_front)
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(VecDeque::len).sum()
    }
}

impl<T> Default for ByPriority<T> {
    fn default() -> Self {
        Self([const { VecDeque::new() }; 3])
    }
}
