//! `zeEventPoolGetIpcHandle`, `zeEventPoolOpenIpcHandle` and their counterparts, and those of counter-based events.
//!
//! An event of an opened pool is the event with the same index in the pool that the handle was made of. As in Intel's
//! driver, the program may send the descriptor that a handle begins with, as with handles of memory.

use std::ffi::c_char;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::ze_ipc_event_counter_based_handle_t;

use super::board::{Board, Watcher};
use super::entry::TIMED;
use super::object::{Attributes, Event};
use super::pool::EventPool;
use super::rounds::Place;
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::handle::{Named, hand_out, resolve, retire};
use crate::usm::ipc::{Handle, Subject, find_file};

/// `zeEventPoolGetIpcHandle`, for a pool with `ZE_EVENT_POOL_FLAG_IPC`. The descriptor in the handle stays open until the
/// pool is destroyed and its last event.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a pool without that flag or with counter-based events, and the result code for
/// the system's error, which is described, where the system allows no memory files.
pub fn pool_handle(pool: Arc<EventPool>, handle: &mut sys::ze_ipc_event_pool_handle_t) -> ZeResult {
    handle.data = encode(&pool.exported()?.board, 0, Subject::EventPool)?;
    Ok(())
}

/// The handle of a board's file, for the slot with this index.
fn encode(board: &Board, index: u32, subject: Subject) -> ZeResult<[c_char; 64]> {
    let file = board.file().ok_or(sys::ZE_RESULT_ERROR_UNKNOWN)?;
    let about = file.metadata().map_err(|_| sys::ZE_RESULT_ERROR_UNKNOWN)?;
    let handle = Handle::new(file.as_raw_fd(), about.ino(), index.into(), 0);
    Ok(handle.encode(subject))
}

/// `zeEventPoolOpenIpcHandle`: a new pool each time, to be closed by [`close_pool`].
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when the handle is invalid or its file cannot be opened: its process is gone or not
/// accessible, or the descriptor is closed.
pub fn open_pool(
    Named(_, context): Named<Context>,
    handle: sys::ze_ipc_event_pool_handle_t,
    pool: &mut sys::ze_event_pool_handle_t,
) -> ZeResult {
    let handle = Handle::decode(&handle.data, Subject::EventPool)?;
    let board = find_file(&handle).and_then(Board::open);
    let board = board.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    let opened = EventPool::opened(context as usize, Watcher::new(board));
    hand_out(opened, pool)
}

/// `zeEventPoolCloseIpcHandle`; the pool's live events are not affected.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a pool that [`open_pool`] did not give.
pub fn close_pool(pool: sys::ze_event_pool_handle_t) -> ZeResult {
    let is_opened = resolve::<EventPool>(pool)?.is_opened;
    ensure(is_opened, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    retire::<EventPool>(pool).map(drop)
}

/// `zeEventPoolPutIpcHandle`: the handle's descriptor belongs to the pool and is closed with it, so only the handle is
/// checked.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for anything but a handle.
pub fn put_pool(_: Arc<Context>, handle: sys::ze_ipc_event_pool_handle_t) -> ZeResult {
    Handle::decode(&handle.data, Subject::EventPool).map(drop)
}

/// `zeEventCounterBasedGetIpcHandle`, for an event with `ZE_EVENT_COUNTER_BASED_FLAG_IPC`: of the command that was submitted
/// last to signal it. The descriptor in the handle stays open until the event is destroyed.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for another event, and the result code for the system's error, which is described, where
/// the system allows no memory files.
pub fn counter_handle(
    event: Arc<Event>,
    handle: &mut ze_ipc_event_counter_based_handle_t,
) -> ZeResult {
    let place = event.exported()?;
    handle.data = encode(&place.watcher.board, place.index, Subject::CounterEvent)?;
    Ok(())
}

/// `zeEventCounterBasedOpenIpcHandle`: a new event each time, to be closed by [`close_counter`]. Commands that signal it leave
/// the event that the handle was made of as it is.
///
/// # Errors
/// Those of [`open_pool`].
pub fn open_counter(
    _: Arc<Context>,
    handle: ze_ipc_event_counter_based_handle_t,
    event: &mut sys::ze_event_handle_t,
) -> ZeResult {
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let handle = Handle::decode(&handle.data, Subject::CounterEvent)?;
    let board = find_file(&handle).and_then(Board::open).ok_or(invalid)?;
    let index = u32::try_from(handle.place).map_err(|_| invalid)?;
    ensure(index < board.count, invalid)?;
    let flags = board.flags;
    let attributes = Attributes {
        timed: flags & TIMED != 0,
        counter: Some(flags),
        ..Attributes::default()
    };
    let watcher = Arc::new(Watcher::new(board));
    let opened = Event::opened(attributes, Place { watcher, index });
    hand_out(opened, event)
}

/// `zeEventCounterBasedCloseIpcHandle`; commands that wait for it or will signal it are not affected.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for an event that [`open_counter`] did not give.
pub fn close_counter(event: sys::ze_event_handle_t) -> ZeResult {
    let is_opened = resolve::<Event>(event)?.is_opened;
    ensure(is_opened, sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    retire::<Event>(event).map(drop)
}
