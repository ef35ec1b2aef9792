//! Events: how the host learns that an operation is done, and how operations wait for each other.

use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use level_zero_sys as sys;

use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::process::{Mutex, Own};

/// How many events are made at a time.
const POOL_SIZE: u32 = 64;

/// In nanoseconds, the shortest wait after which the device is asked whether it is lost: Intel's driver looks for a hang only
/// in waits of half a second, so that shorter ones, one after the other, would not end.
const LONG_WAIT: u64 = 10_000_000;

/// For how long a driver that refuses a call is asked again, and the pause in between. It is asked twice at least: on a lost
/// device each answer of Intel's driver takes half a second.
const PERSISTENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);

/// The end of one operation. Cheap to clone; any thread may ask it or wait for it.
///
/// Dropping it neither cancels the operation nor waits for it. In a fork's child an event of the parent is over: it is
/// complete, and has no times.
///
/// Source: Level Zero specification, "Core programming guide", Synchronization primitives; kernel timestamp events.
#[derive(Clone, Debug)]
pub struct Event(Arc<Own<Inner>>);

/// When an operation ran, in nanoseconds of the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When it began, since some moment of the device's own.
    pub start: u64,
    /// When it ended, since the same moment.
    pub end: u64,
}

impl Timing {
    /// How long it took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.end - self.start)
    }
}

#[derive(Debug)]
struct Inner {
    handle: sys::ze_event_handle_t,
    pool: Arc<EventPool>,
}

// SAFETY: events may be asked, waited for and signalled from any thread; the handle outlives `Inner` in its pool.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Event {
    /// Whether the operation is done.
    ///
    /// # Errors
    /// [`Error::Call`] when the device is lost.
    pub fn is_complete(&self) -> Result<bool> {
        if self.is_inherited() {
            return Ok(true);
        }
        self.pending_or(
            // SAFETY: the event is alive.
            unsafe { call!(self.library(), zeEventQueryStatus(self.handle())) },
        )
    }

    /// Waits until the operation is done, at most for `timeout` (`None`: without limit), and tells whether it is.
    ///
    /// # Errors
    /// [`Error::Call`] when the device is lost.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        if self.is_inherited() {
            return Ok(true);
        }
        let nanoseconds = timeout.map_or(u64::MAX, |limit| {
            u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)
        });
        let done = self.pending_or(
            // SAFETY: the event is alive.
            unsafe {
                call!(
                    self.library(),
                    zeEventHostSynchronize(self.handle(), nanoseconds)
                )
            },
        )?;
        if !done && nanoseconds >= LONG_WAIT {
            self.0.pool.device.check_alive()?;
        }
        Ok(done)
    }

    /// Waits until the operation is done.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), at once.
    pub(crate) fn finish(&self) -> Result<()> {
        while !self.wait(None)? {}
        Ok(())
    }

    /// Whether it is of this process's parent.
    pub(crate) fn is_inherited(&self) -> bool {
        self.0.is_inherited()
    }

    /// When the operation ran. Before it is done there is no answer; an event that the host signalled has none ever.
    ///
    /// # Errors
    /// [`Error::Call`] with `ZE_RESULT_NOT_READY` before it is done, or when the device is lost.
    pub fn timing(&self) -> Result<Timing> {
        let (start, end) = self.ticks()?;
        let timer = self.0.pool.device.timer()?;
        let start_ns = timer.nanoseconds(start);
        Ok(Timing {
            start: start_ns,
            end: start_ns.saturating_add(timer.nanoseconds(timer.ticks_between(start, end))),
        })
    }

    /// What the device's clock of [`timing`](Self::timing) showed at a moment of the host's before the operation began;
    /// its start at the latest.
    ///
    /// # Errors
    /// As [`timing`](Self::timing).
    pub fn device_time(&self, before: Instant) -> Result<u64> {
        let (start, _) = self.ticks()?;
        let device = &self.0.pool.device;
        let timer = device.timer()?;
        let then = device.now()?.wrapping_sub(timer.ticks(before.elapsed()));
        let waited = timer.ticks_between(then, start);
        // The clocks are read one after the other, so that the start of what began at once may seem to come first.
        let waited = if waited <= timer.ticks_between(start, then) {
            waited
        } else {
            0
        };
        Ok(timer
            .nanoseconds(start)
            .saturating_sub(timer.nanoseconds(waited)))
    }

    /// When it began and ended, in ticks: as it went by on the wall, whichever engine context ran when.
    fn ticks(&self) -> Result<(u64, u64)> {
        if self.is_inherited() {
            return Err(Error::Call {
                function: "zeEventQueryKernelTimestamp",
                result: sys::ZE_RESULT_NOT_READY,
            });
        }
        let mut result = sys::ze_kernel_timestamp_result_t::default();
        // SAFETY: the event is alive and its pool keeps timestamps; `result` outlives the call.
        unsafe {
            call!(
                self.library(),
                zeEventQueryKernelTimestamp(self.handle(), &mut result)
            )
        }?;
        Ok((result.global.kernelStart, result.global.kernelEnd))
    }

    /// Waits until the operation is done, also where the driver refuses to wait for a while, and tells whether it is: it
    /// is not when the driver keeps refusing, as with a lost device, on which nothing runs any more.
    pub fn drain(&self) -> bool {
        persist(|| self.finish())
    }

    /// Signals it from the host.
    pub(crate) fn signal(&self) -> Result<()> {
        if self.is_inherited() {
            return Ok(());
        }
        // SAFETY: the event is alive.
        unsafe { call!(self.library(), zeEventHostSignal(self.handle())) }
    }

    /// Signals it from the host, also where the driver refuses for a while: who waits has no other way to go on.
    pub(crate) fn signal_surely(&self) -> bool {
        persist(|| self.signal())
    }

    /// The context it belongs to: only there can operations wait for it.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.pool.context
    }

    /// Not ready is an answer here, not an error.
    fn pending_or(&self, answer: Result<()>) -> Result<bool> {
        match answer {
            Ok(()) => Ok(true),
            Err(Error::Call {
                result: sys::ZE_RESULT_NOT_READY,
                ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn library(&self) -> &'static sys::Library {
        self.0.pool.context.library()
    }

    /// The raw handle, for calls that this crate does not wrap.
    #[must_use]
    pub fn handle(&self) -> sys::ze_event_handle_t {
        self.0.handle
    }
}

/// Asks again while the driver refuses, for a moment; whether it gave in.
fn persist(call: impl Fn() -> Result<()>) -> bool {
    let begun = Instant::now();
    if call().is_ok() {
        return true;
    }
    loop {
        thread::sleep(PAUSE);
        if call().is_ok() {
            return true;
        }
        if begun.elapsed() > PERSISTENCE {
            return false;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.pool.state.lock().free.push(self.handle);
    }
}

/// Makes events and takes them back. Events come from Level Zero by the pool, so they are kept and used again.
#[derive(Debug)]
pub(crate) struct EventPool {
    context: Context,
    device: Device,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pools: Vec<sys::ze_event_pool_handle_t>,
    events: Vec<sys::ze_event_handle_t>,
    free: Vec<sys::ze_event_handle_t>,
}

// SAFETY: handles may be used from any thread, and the mutex orders changes to the lists.
unsafe impl Send for EventPool {}
// SAFETY: as above.
unsafe impl Sync for EventPool {}

impl EventPool {
    pub(crate) fn new(context: &Context, device: &Device) -> Arc<Self> {
        Arc::new(Self {
            context: context.clone(),
            device: device.clone(),
            state: Mutex::default(),
        })
    }

    /// An event that nobody uses, not signalled. Whoever makes an operation signal it, or wait for it, keeps a clone
    /// until that has happened.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Event> {
        let mut state = self.state.lock();
        if state.free.is_empty() {
            self.grow(&mut state)?;
        }
        let Some(handle) = state.free.pop() else {
            return Err(Error::Call {
                function: "zeEventCreate",
                result: sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
            });
        };
        drop(state);
        // From here the event goes back to the list when it is dropped.
        let event = Event(Arc::new(Own::new(Inner {
            handle,
            pool: Arc::clone(self),
        })));
        // SAFETY: nobody else uses the event.
        unsafe { call!(self.context.library(), zeEventHostReset(handle)) }?;
        Ok(event)
    }

    fn grow(&self, state: &mut State) -> Result<()> {
        let library = self.context.library();
        let description = sys::ze_event_pool_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
            flags: sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0
                | sys::ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP.0,
            count: POOL_SIZE,
            ..Default::default()
        };
        let mut device = self.device.handle();
        let mut pool = ptr::null_mut();
        // SAFETY: context and device are alive; one device is passed with a count of one.
        unsafe {
            call!(
                library,
                zeEventPoolCreate(
                    self.context.handle(),
                    &description,
                    1,
                    &mut device,
                    &mut pool
                )
            )
        }?;
        state.pools.push(pool);
        for index in 0..POOL_SIZE {
            let description = sys::ze_event_desc_t {
                stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
                index,
                signal: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
                wait: sys::ZE_EVENT_SCOPE_FLAG_HOST.0,
                ..Default::default()
            };
            let mut event = ptr::null_mut();
            // SAFETY: the pool is alive and each index is used once.
            unsafe { call!(library, zeEventCreate(pool, &description, &mut event)) }?;
            state.events.push(event);
            state.free.push(event);
        }
        Ok(())
    }
}

impl Drop for EventPool {
    fn drop(&mut self) {
        let library = self.context.library();
        let state = self.state.get_mut();
        for &event in &state.events {
            // SAFETY: every `Event` held this pool, so none is left.
            let _ = unsafe { call!(library, zeEventDestroy(event)) };
        }
        for &pool in &state.pools {
            // SAFETY: its events are destroyed.
            let _ = unsafe { call!(library, zeEventPoolDestroy(pool)) };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Runtime;
    use crate::process::in_child;

    #[test]
    fn what_a_parent_waits_for_is_done_in_its_child() {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let event = EventPool::new(&context, &device).take().unwrap();
        assert!(!event.is_complete().unwrap());
        in_child(|| {
            assert!(event.is_complete().unwrap());
            assert!(event.wait(None).unwrap());
        });
        assert!(!event.is_complete().unwrap());
    }
}
