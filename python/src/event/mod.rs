//! `Event`, the completion of an asynchronous operation, and wait lists.

mod class;
mod wait_list;

pub(crate) use class::PyEvent;
pub(crate) use wait_list::WaitList;
