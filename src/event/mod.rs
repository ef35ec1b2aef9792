//! Events: the completion of operations, for the host and for other operations.

mod pool;
mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use level_zero_sys as sys;
use once_cell::race::OnceBox;

pub(crate) use self::pool::EventPool;
#[cfg(target_os = "linux")]
pub(crate) use self::pool::{create_event, create_pool};
pub(crate) use self::shared::Shared;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::exit;
use crate::pool::retry_out_of_memory;
use zeusm_process::Owned;

/// The shortest wait after which the device's status is always queried: Intel's driver detects a hang only in waits
/// of half a second, so that a sequence of shorter ones would not end.
const LONG_WAIT: Duration = Duration::from_millis(10);

/// The timeout for retries of a failing call, and the delay between two attempts. There are at least two attempts, as each
/// call of Intel's driver takes half a second on a lost device.
const RETRY_TIMEOUT: Duration = Duration::from_millis(100);
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// The completion of one operation. Cheap to clone; any thread may query it or wait for it.
///
/// Dropping it neither cancels the operation nor waits for it. In a fork's child, an event of the parent is complete, and has
/// no timing.
///
/// Source: Level Zero specification, "Core programming guide", Synchronization primitives; kernel timestamp events.
#[derive(Clone, Debug)]
pub struct Event(Arc<Owned<Inner>>);

/// The start and end of an operation, in nanoseconds of the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The start, relative to a moment that is fixed for the device.
    pub start: u64,
    /// The end, relative to the same moment.
    pub end: u64,
}

impl Timing {
    /// The time from start to end; zero if the end is before the start.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.start))
    }
}

#[derive(Debug)]
struct Inner {
    handle: sys::ze_event_handle_t,
    pool: Arc<EventPool>,
    /// Set once the device has the operation that signals the event, the host has signalled it, or the submission has
    /// failed.
    is_submitted: AtomicBool,
    /// Set before `is_submitted` when the submission has failed.
    failure: OnceBox<Arc<Error>>,
    /// The number of its operation in the order of the pool's command list; 0 for a host task, and before the submission.
    number: AtomicU64,
    /// The events of other processes that the operation waits for, with which it fails. Set before `is_submitted`; empty if the
    /// event was opened after the end of another process's operation.
    foreign: OnceBox<Vec<Arc<dyn Shared>>>,
}

// SAFETY: events may be queried, waited for and signalled from any thread; the pool destroys the handle after `Inner`.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl EventPool {
    /// An unused event, not signalled. A clone of it has to live until every operation that signals it, or waits for it, is
    /// complete. If a new pool of events needs memory, zeusm's pools of memory return theirs; the caller holds no lock, as
    /// that may call into Python.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Event> {
        retry_out_of_memory(|| self.take_at_once())
    }

    /// Makes an event for a later [`take_at_once`](Self::take_at_once), unless another thread takes it.
    pub(crate) fn reserve(self: &Arc<Self>) -> Result<()> {
        self.take().map(drop)
    }

    /// As [`take`](Self::take), without memory from pools: for a caller with a lock.
    pub(crate) fn take_at_once(self: &Arc<Self>) -> Result<Event> {
        let handle = self.take_handle()?;
        // From now on, the drop returns the event to the free list.
        let event = self.event(handle);
        // SAFETY: the event has no other owner.
        unsafe { call!(self.context.library(), zeEventHostReset(handle)) }?;
        Ok(event)
    }

    fn event(self: &Arc<Self>, handle: sys::ze_event_handle_t) -> Event {
        Event(Arc::new(Owned::new(Inner {
            handle,
            pool: Arc::clone(self),
            is_submitted: AtomicBool::new(false),
            failure: OnceBox::new(),
            number: AtomicU64::new(0),
            foreign: OnceBox::new(),
        })))
    }
}

impl Event {
    /// The completion of another process's operation, for the queue whose events `pool` has.
    #[cfg(target_os = "linux")]
    pub(crate) fn opened(pool: &Arc<EventPool>, of: Arc<dyn Shared>) -> Self {
        let event = pool.event(of.done());
        let _ = event.0.foreign.set(Box::new(vec![of]));
        event.0.is_submitted.store(true, Ordering::Release);
        event
    }

    /// This complete event, as that of another process's operation.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_another(self) -> Self {
        let _ = self.0.foreign.set(Box::default());
        self
    }

    /// Whether the operation is complete.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]; [`Error::NotExecuted`]; [`Error::ProducerFailed`].
    pub fn is_complete(&self) -> Result<bool> {
        let done = self.query().map_err(|cause| self.cause(cause))?;
        if !done {
            // For a program that polls, as the event never completes on a lost device.
            self.0.pool.device.check_alive_at_times()?;
        }
        Ok(done)
    }

    /// Whether the operation is complete, by a query of the event only.
    fn query(&self) -> Result<bool> {
        if self.is_inherited() {
            return Ok(true);
        }
        let done = self.is_submitted()
            && self.is_ready(
                // SAFETY: the event is alive.
                unsafe { call!(self.library(), zeEventQueryStatus(self.handle())) },
            )?;
        // An event is also signalled when the submission of its operation fails.
        self.check_own()?;
        // Before its end, the operation accesses its operands, although it has failed.
        if done {
            self.check_foreign()?;
        }
        Ok(done)
    }

    /// Waits until the operation is complete or the timeout (`None`: no timeout) has expired; returns whether it is
    /// complete.
    ///
    /// # Errors
    /// As [`is_complete`](Self::is_complete).
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        if self.is_inherited() {
            return Ok(true);
        }
        let begun = timeout.map(|limit| (Instant::now(), limit));
        let nanoseconds = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let left = || begun.map(|(begun, limit)| limit.saturating_sub(begun.elapsed()));
        // An event must not be queried while another thread appends its operation: Intel's driver may then take it for
        // complete.
        let done = self.wait_submitted(timeout)
            && self
                .is_ready(
                    // SAFETY: the event is alive.
                    unsafe {
                        call!(
                            self.library(),
                            zeEventHostSynchronize(
                                self.handle(),
                                left().map_or(u64::MAX, nanoseconds)
                            )
                        )
                    },
                )
                .map_err(|cause| self.cause(cause))?;
        // An event is also signalled when the submission of its operation fails.
        self.check_own()?;
        if done {
            self.check_foreign()?;
            return Ok(true);
        }
        let is_long = timeout.is_none_or(|limit| limit >= LONG_WAIT);
        if is_long {
            self.0.pool.device.check_alive()?;
        } else {
            self.0.pool.device.check_alive_at_times()?;
        }
        Ok(false)
    }

    /// Whether the operation accesses its operands no more: it is complete, or its submission failed. Always `false` on a
    /// lost device.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(
            self.query(),
            Ok(true) | Err(Error::NotExecuted { .. } | Error::ProducerFailed(_))
        )
    }

    /// Whether it completes without the host: the device has the operation that signals it, or it is over.
    #[must_use]
    pub fn is_submitted(&self) -> bool {
        self.is_inherited() || self.0.is_submitted.load(Ordering::Acquire)
    }

    /// Waits, with the operating system, until the event [is submitted](Self::is_submitted) or the timeout (`None`: no
    /// timeout) has expired; returns whether it is submitted.
    pub(crate) fn wait_submitted(&self, timeout: Option<Duration>) -> bool {
        if !self.is_submitted() {
            let pool = &self.0.pool;
            let timeout = timeout.unwrap_or(Duration::MAX);
            let is_pending = |(): &mut ()| !self.is_submitted();
            // The thread for host tasks submits nothing more once the process exits.
            exit::outside(|| {
                let guard = pool.submission.lock();
                drop(pool.submitted.wait_while(guard, timeout, is_pending));
            });
        }
        self.is_submitted()
    }

    /// Wakes the threads that wait for the submission, after an event was shared before it.
    pub(crate) fn announce_submission(&self) {
        let pool = &self.0.pool;
        drop(pool.submission.lock());
        pool.submitted.notify_all();
    }

    /// Records the submission of the operation that signals the event. If it failed, the host signals the event, as other
    /// operations may wait for it.
    pub(crate) fn set_submitted(&self, submission: Result<()>) {
        match submission {
            Ok(()) => self.0.is_submitted.store(true, Ordering::Release),
            Err(cause) => {
                self.set_failed(cause);
                self.signal_with_retries();
            }
        }
    }

    /// Records the first failure.
    fn set_failed(&self, cause: Error) {
        let cause = match cause {
            // Of an operation that it follows.
            Error::NotExecuted(cause) => cause,
            cause => Arc::new(cause),
        };
        let _ = self.0.failure.set(Box::new(cause));
        self.0.is_submitted.store(true, Ordering::Release);
    }

    /// Checks that its operation has not failed, and that it is complete or its device not lost: later operations on the queue
    /// of `own` would wait for it, and fail.
    pub(crate) fn check_reachable(&self, own: &Device) -> Result<()> {
        self.check_submission()?;
        if self.device() == own || self.is_over() {
            return Ok(());
        }
        // A query of the event may not tell that the device is lost.
        self.device().check_alive()
    }

    /// Sets the number of its operation in the order of the pool's command list, from 1 on.
    pub(crate) fn set_number(&self, number: u64) {
        self.0.number.store(number, Ordering::Relaxed);
    }

    /// The number of its operation in the order of the list whose events `pool` has; `None` for a host task, and for an
    /// operation of another list.
    pub(crate) fn number_in(&self, pool: &Arc<EventPool>) -> Option<u64> {
        let number = self.0.number.load(Ordering::Relaxed);
        (number > 0 && Arc::ptr_eq(&self.0.pool, pool)).then_some(number)
    }

    /// Checks that its operation, or the submission, has not failed. An event that [is submitted](Self::is_submitted) without a
    /// failure has none later, unless its operation waits for another process's. That of a parent process counts as complete.
    ///
    /// # Errors
    /// [`Error::NotExecuted`]; [`Error::ProducerFailed`].
    pub fn check_submission(&self) -> Result<()> {
        self.check_own()?;
        self.check_foreign()
    }

    /// Checks that no event of another process has failed that its operation waits for. It is final once the event is signalled.
    fn check_foreign(&self) -> Result<()> {
        if self.is_inherited() {
            return Ok(());
        }
        self.foreign().try_for_each(|it| it.check())
    }

    fn foreign(&self) -> impl Iterator<Item = &Arc<dyn Shared>> {
        self.0.foreign.get().into_iter().flatten()
    }

    /// Whether its operation may still fail with another process's.
    #[cfg(target_os = "linux")]
    pub(crate) fn follows_others(&self) -> bool {
        self.foreign().any(|it| !it.has_succeeded())
    }

    /// Has its operation, which is to be submitted behind those of `awaited`, fail with the events of other processes that these
    /// wait for.
    pub(crate) fn follow(&self, awaited: &[Self]) {
        let of_awaited = awaited.iter().flat_map(Self::foreign);
        let mut foreign: Vec<_> = of_awaited.filter(|it| !it.has_succeeded()).collect();
        if foreign.is_empty() {
            return;
        }
        foreign.sort_by_key(|it| it.done());
        foreign.dedup_by_key(|it| it.done());
        let foreign = foreign.into_iter().cloned().collect();
        let _ = self.0.foreign.set(Box::new(foreign));
    }

    fn check_own(&self) -> Result<()> {
        match self.0.failure.get().filter(|_| !self.is_inherited()) {
            Some(cause) => Err(Error::NotExecuted(Arc::clone(cause))),
            None => Ok(()),
        }
    }

    /// Waits until the operation is complete, without a timeout.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(crate) fn finish(&self) -> Result<()> {
        while !self.wait(None)? {}
        Ok(())
    }

    /// The device of the queue whose operation or host task signals it. If that is lost, the event may never complete, and the
    /// device does not access the operands any more.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.pool.device
    }

    /// Whether the event was made by a parent process.
    pub(crate) fn is_inherited(&self) -> bool {
        self.0.is_inherited()
    }

    /// The start and end of the operation. Those of an event that the host signals, as of a host task's, have no meaning.
    ///
    /// # Errors
    /// [`Error::Call`] with `ZE_RESULT_NOT_READY` before the operation is complete; [`Error::NotExecuted`];
    /// [`Error::DeviceLost`].
    pub fn timing(&self) -> Result<Timing> {
        let (start, end) = self.ticks()?;
        let timer = self.0.pool.device.timer();
        let start_ns = timer.nanoseconds(start);
        Ok(Timing {
            start: start_ns,
            end: start_ns.saturating_add(timer.nanoseconds(timer.ticks_between(start, end))),
        })
    }

    /// Converts a host time before the start of the operation to the device's clock of [`timing`](Self::timing). The result
    /// is at most the start.
    ///
    /// # Errors
    /// As [`timing`](Self::timing).
    pub fn device_time(&self, before: Instant) -> Result<u64> {
        let (start, _) = self.ticks()?;
        let device = &self.0.pool.device;
        let timer = device.timer();
        let clocks = device.clocks()?;
        let since = clocks.host.saturating_duration_since(before);
        let then = clocks.device.wrapping_sub(timer.ticks(since));
        Ok(timer
            .nanoseconds(start)
            .saturating_sub(timer.nanoseconds(timer.ticks_after(then, start))))
    }

    /// The time from the submission to the start, and from the start to the end. The operation was submitted after the device's
    /// clock had the value `submission`.
    ///
    /// # Errors
    /// As [`timing`](Self::timing).
    pub(crate) fn execution(&self, submission: u64) -> Result<(Duration, Duration)> {
        let (start, end) = self.ticks()?;
        let timer = self.0.pool.device.timer();
        let duration = |ticks| Duration::from_nanos(timer.nanoseconds(ticks));
        let delay = timer.ticks_after(submission, start);
        Ok((duration(delay), duration(timer.ticks_between(start, end))))
    }

    /// The start and end in ticks of the device's global clock, as opposed to the time of one engine context.
    fn ticks(&self) -> Result<(u64, u64)> {
        if self.is_inherited() {
            return Err(Error::TimestampsOfParent);
        }
        if self.0.is_opened() || self.0.foreign.get().is_some_and(Vec::is_empty) {
            return Err(Error::TimestampsOfOther);
        }
        // The host signals the event of an operation that was not executed, which can give it a time.
        self.check_submission()?;
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

    /// Waits until the operation [is over](Self::is_over), and retries when the wait fails.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], when no work runs on the device any more; the error of the wait when it keeps failing although
    /// the device is not lost. The operation may then be in flight.
    pub fn drain(&self) -> Result<()> {
        let drained = retry(|| {
            self.finish()
                .or_else(|error| if self.is_over() { Ok(()) } else { Err(error) })
        });
        // Intel's driver also reports other errors for a lost device.
        drained.or_else(|cause| self.device().check_alive_after_error().and(Err(cause)))
    }

    /// As [`drain`](Self::drain), of all events, also after an error; returns the first one.
    pub(crate) fn drain_all(events: &[Self]) -> Result<()> {
        events.iter().map(Self::drain).fold(Ok(()), Result::and)
    }

    /// Signals it from the host.
    pub(crate) fn signal(&self) -> Result<()> {
        if self.is_inherited() {
            return Ok(());
        }
        // SAFETY: the event is alive.
        unsafe { call!(self.library(), zeEventHostSignal(self.handle())) }?;
        self.0.is_submitted.store(true, Ordering::Release);
        self.announce_submission();
        Ok(())
    }

    /// Signals it from the host, and retries when that fails, as the operations that wait for it would hang.
    pub(crate) fn signal_with_retries(&self) {
        if let Err(cause) = retry(|| self.signal()) {
            self.set_failed(cause);
            self.announce_submission();
        }
    }

    /// The context it belongs to. Operations of other contexts cannot wait for it.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.pool.context
    }

    /// The error of a failed query or wait: a loss that the driver reports is recorded for the device, once its status confirms
    /// it.
    fn cause(&self, cause: Error) -> Error {
        match cause.result() {
            Some(sys::ZE_RESULT_ERROR_DEVICE_LOST) => {
                let lost = self.device().check_alive_after_error().err();
                lost.unwrap_or(cause)
            }
            _ => cause,
        }
    }

    /// Converts the result of a query: `ZE_RESULT_NOT_READY` is no error here.
    fn is_ready(&self, answer: Result<()>) -> Result<bool> {
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

/// Retries a failing call until the timeout; returns the last error if it does not succeed.
pub(crate) fn retry(call: impl Fn() -> Result<()>) -> Result<()> {
    let begun = Instant::now();
    if call().is_ok() {
        return Ok(());
    }
    loop {
        thread::sleep(RETRY_DELAY);
        let answer = call();
        if answer.is_ok() || begun.elapsed() > RETRY_TIMEOUT {
            return answer;
        }
    }
}

impl Inner {
    /// Whether it is the event of another process, which has the handle.
    fn is_opened(&self) -> bool {
        let mut foreign = self.foreign.get().into_iter().flatten();
        foreign.any(|it| it.done() == self.handle)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.is_opened() {
            self.pool.put_back(self.handle);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
