//! Event pools.

use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions;

use super::board::{Board, Watcher};
use crate::abi::arguments::check_flags;
use crate::abi::entry::In;
use crate::abi::result::{ZeResult, ensure};
use crate::context::Context;
use crate::device;
use crate::engine::Signal;
use crate::handle::{Named, getters, hand_out, object};
use crate::memory::ShareError;

/// `ze_event_pool_flags_t` up to 1.17.
const POOL_FLAGS: u32 = 0xf;
/// `ze_event_pool_counter_based_exp_flags_t`.
const COUNTER_BASED_FLAGS: u32 = 0x3;

object!(EventPool, sys::_ze_event_pool_handle_t, EventPool);

/// A pool of events.
pub struct EventPool {
    context: usize,
    flags: u32,
    /// How many events it has.
    pub(super) count: u32,
    /// The flags of its counter-based events; `None` for regular ones.
    pub(super) counter: Option<u32>,
    /// The events' state, if other processes may share it, or the reason why they cannot.
    shared: Option<Result<Arc<Watcher>, ShareError>>,
    /// Whether it was opened by a handle.
    pub(super) is_opened: bool,
}

impl EventPool {
    /// The pool of another process, whose events `watcher` has.
    pub fn opened(context: usize, watcher: Watcher) -> Self {
        Self {
            context,
            flags: watcher.board.flags & POOL_FLAGS,
            count: watcher.board.count,
            counter: None,
            shared: Some(Ok(Arc::new(watcher))),
            is_opened: true,
        }
    }

    /// What other processes need to share its events.
    ///
    /// # Errors
    /// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a pool that was not created to be shared, else the system's, which is
    /// described.
    pub fn exported(&self) -> ZeResult<&Watcher> {
        let shared = self.shared.as_ref();
        let watcher = shared.ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        Ok(&**watcher.as_ref().map_err(|error| error.report())?)
    }

    /// The signal of a new event with this index, if processes share it. It is not set, unless it belongs to another
    /// process, which may have set it already.
    pub fn shared_signal(&self, index: u32) -> Option<Arc<Signal>> {
        let watcher = self.shared.as_ref()?.as_ref().ok()?;
        let signal = watcher.signal(index, self.is_timed());
        if !self.is_opened {
            signal.reset();
        }
        Some(signal)
    }

    /// Whether its events keep the times of the commands that signal them.
    pub fn is_timed(&self) -> bool {
        let timed = sys::ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP.0
            | extensions::ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP;
        self.flags & timed != 0
    }
}

/// The flags of counter-based events, if a pool's chain asks for them.
fn counter(desc: &In<'_, sys::ze_event_pool_desc_t>) -> ZeResult<Option<u32>> {
    let counter = desc.extension::<extensions::ze_event_pool_counter_based_exp_desc_t>();
    let checked = counter.map(|it| check_flags(it.flags, COUNTER_BASED_FLAGS).map(|()| it.flags));
    checked.transpose()
}

/// `zeEventPoolCreate`.
pub fn create_pool(
    Named(_, context): Named<Context>,
    desc: In<'_, sys::ze_event_pool_desc_t>,
    _: device::Chosen,
    pool: &mut sys::ze_event_pool_handle_t,
) -> ZeResult {
    check_flags(desc.flags, POOL_FLAGS)?;
    ensure(desc.count > 0, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
    let counter = counter(&desc)?;
    let is_shared = desc.flags & sys::ZE_EVENT_POOL_FLAG_IPC.0 != 0 && counter.is_none();
    let board = is_shared.then(|| Board::create(desc.flags, desc.count));
    let made = EventPool {
        context: context as usize,
        flags: desc.flags,
        count: desc.count,
        counter,
        shared: board.map(|board| Ok(Arc::new(Watcher::new(board?)))),
        is_opened: false,
    };
    hand_out(made, pool)
}

getters! { EventPool {
    /// `zeEventPoolGetContextHandle`.
    context_handle: sys::ze_context_handle_t =
        |pool| Ok(pool.context as sys::ze_context_handle_t);
    /// `zeEventPoolGetFlags`.
    creation_flags: u32 = |pool| Ok(pool.flags);
}}
