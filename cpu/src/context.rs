//! Contexts, which own memory, queues, lists and event pools.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use level_zero_sys as sys;
use zeusm_process::Lazy;

use crate::abi::arguments::check_flags;
use crate::abi::entry::{Address, In};
use crate::abi::result::ZeResult;
use crate::device::Device;
use crate::driver::Driver;
use crate::handle::{hand_out, object, register, retire};
use crate::{device, driver, memory};

object!(Context, sys::_ze_context_handle_t, Context);

/// A context.
#[derive(Debug)]
pub struct Context {
    /// The id that its allocations carry.
    pub id: u64,
}

impl Context {
    /// A new context, different from every other one of the process.
    fn make() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// `zeContextCreate`.
pub fn create(
    _: Driver,
    desc: In<'_, sys::ze_context_desc_t>,
    context: &mut sys::ze_context_handle_t,
) -> ZeResult {
    check_flags(desc.flags, 0x1)?;
    hand_out(Context::make(), context)
}

/// `zeContextCreateEx`; no devices means all of them.
pub fn create_for(
    driver: Driver,
    desc: In<'_, sys::ze_context_desc_t>,
    _: device::Chosen,
    context: &mut sys::ze_context_handle_t,
) -> ZeResult {
    create(driver, desc, context)
}

/// `zeContextDestroy`: also frees the context's memory; memory that commands in flight use is freed when they are
/// complete.
pub fn destroy(context: sys::ze_context_handle_t) -> ZeResult {
    drop(memory::remove_context(retire::<Context>(context)?.id));
    Ok(())
}

/// `zeContextGetStatus`.
pub fn status(_: Arc<Context>) -> ZeResult {
    Ok(())
}

/// `zeContextSystemBarrier`: a memory fence, as host and device are the same processor.
pub fn system_barrier(_: Arc<Context>, _: &'static Device) -> ZeResult {
    std::sync::atomic::fence(Ordering::SeqCst);
    Ok(())
}

/// `zeContextMakeMemoryResident` and `zeContextEvictMemory`: all memory is resident, so only the range is checked.
pub fn check_residency(
    _: Arc<Context>,
    _: &'static Device,
    Address(pointer): Address,
    size: usize,
) -> ZeResult {
    memory::Span::new(pointer, size).map(drop)
}

/// `zeDriverGetDefaultContext`: one context that lives as long as the process.
///
/// It returns null before the driver is initialised or for a handle that is not the driver's.
pub fn default_context(driver: sys::ze_driver_handle_t) -> sys::ze_context_handle_t {
    static DEFAULT: Lazy<usize> = Lazy::new();
    if driver::expect(driver).is_err() {
        return std::ptr::null_mut();
    }
    let made =
        DEFAULT.get_or_make(|| register(Arc::new(Context::make())).map_or(0, |it| it as usize));
    *made as sys::ze_context_handle_t
}
