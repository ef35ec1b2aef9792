//! An event that processes share: one of Level Zero's for the completion of an operation, and one that says that it has failed.

use std::ffi::c_char;
use std::ptr;

use level_zero_sys as sys;
use zeusm_process::FileId;

use super::driver::DriverHandle;
use super::{exports, imported_file};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::{Shared, create_event, create_pool, retry};

/// The two events of a pool of their own, so that none is reset for another use while a process looks at it.
#[derive(Debug)]
pub struct SharedEvent {
    context: Context,
    pool: sys::ze_event_pool_handle_t,
    /// Null if it could not be made.
    done: sys::ze_event_handle_t,
    /// As `done`.
    failed: sys::ze_event_handle_t,
    /// The process whose operation it is.
    process: u32,
    is_opened: bool,
    /// The driver's handle with the file of its descriptor, and the id of the export, which the drop ends.
    export: Option<(DriverHandle, Option<FileId>, u64)>,
}

// SAFETY: events may be queried and signalled from any thread; the handles are destroyed once, by the last owner.
unsafe impl Send for SharedEvent {}
// SAFETY: as above.
unsafe impl Sync for SharedEvent {}

impl SharedEvent {
    /// Makes one of this process, not signalled.
    pub fn create(context: &Context) -> Result<Self> {
        let pool = create_pool(context, sys::ZE_EVENT_POOL_FLAG_IPC.0, 2)?;
        // SAFETY: it has been made here.
        unsafe { Self::of(context, pool, std::process::id(), false) }
    }

    /// Opens the pool of one that another process has exported, or this one, for [`of`](Self::of). The caller holds the
    /// lock of the driver's files.
    ///
    /// # Safety
    /// A driver of the same kind, in a trusted process, must have made the handle, with the descriptor that it begins with:
    /// drivers do not check the other bytes.
    pub unsafe fn open_pool(
        context: &Context,
        handle: &DriverHandle,
    ) -> Result<sys::ze_event_pool_handle_t> {
        let handle = sys::ze_ipc_event_pool_handle_t {
            data: handle.0.map(|byte| byte as c_char),
        };
        let mut pool = ptr::null_mut();
        // SAFETY: the context is alive, and the caller guarantees the validity of the handle.
        unsafe {
            call!(
                context.library(),
                zeEventPoolOpenIpcHandle(context.handle(), handle, &mut pool)
            )
        }?;
        Ok(pool)
    }

    /// That of a process, by its pool, which it destroys or, if it was opened, closes.
    ///
    /// # Safety
    /// `pool` must have been made for two events or opened in this context, and have no other owner.
    pub unsafe fn of(
        context: &Context,
        pool: sys::ze_event_pool_handle_t,
        process: u32,
        is_opened: bool,
    ) -> Result<Self> {
        // From now on, the drop destroys what there is.
        let mut shared = Self {
            context: context.clone(),
            pool,
            done: ptr::null_mut(),
            failed: ptr::null_mut(),
            process,
            is_opened,
            export: None,
        };
        for (index, event) in [(0, &mut shared.done), (1, &mut shared.failed)] {
            // SAFETY: the pool is alive and each index is used once in this process.
            unsafe { create_event(context, pool, index, event) }?;
        }
        Ok(shared)
    }

    /// Exports it until the drop; returns the driver's handle and the export's id. The caller holds the lock of the driver's files,
    /// and explains an error of the driver.
    pub fn export(
        &mut self,
        explain: impl Fn(Error) -> super::Error,
    ) -> std::result::Result<(DriverHandle, u64), super::Error> {
        let mut handle = sys::ze_ipc_event_pool_handle_t::default();
        // SAFETY: the pool is alive, and the handle outlives the call.
        unsafe {
            call!(
                self.context.library(),
                zeEventPoolGetIpcHandle(self.pool, &mut handle)
            )
        }
        .map_err(explain)?;
        let handle = DriverHandle(handle.data.map(|byte| byte as u8));
        let file = handle.file();
        let id = exports::insert_event(handle, file)?;
        self.export = Some((handle, file, id));
        Ok((handle, id))
    }

    fn set(&self, event: sys::ze_event_handle_t) -> Result<()> {
        let library = self.context.library();
        // SAFETY: the event is alive.
        retry(|| unsafe { call!(library, zeEventHostSignal(event)) })
    }

    fn is_set(&self, event: sys::ze_event_handle_t) -> bool {
        // An error of the query tells nothing: that of a lost device, for instance, which its own check detects.
        // SAFETY: the event is alive.
        unsafe { call!(self.context.library(), zeEventQueryStatus(event)) }.is_ok()
    }
}

impl Shared for SharedEvent {
    fn done(&self) -> sys::ze_event_handle_t {
        self.done
    }

    fn signal(&self) -> Result<()> {
        self.set(self.done)
    }

    fn fail(&self) {
        // If all attempts fail, the device is lost.
        if !self.is_set(self.done) {
            let _ = self.set(self.failed);
        }
        // Again if it is signalled: on the CPU runtime, its process may have been killed between the signal and the wake-up of
        // those who wait.
        let _ = self.set(self.done);
    }

    fn check(&self) -> Result<()> {
        if self.is_set(self.failed) {
            return Err(Error::ProducerFailed(self.process));
        }
        Ok(())
    }

    fn has_succeeded(&self) -> bool {
        self.is_set(self.done) && !self.is_set(self.failed)
    }
}

impl Drop for SharedEvent {
    fn drop(&mut self) {
        let library = self.context.library();
        if let Some((.., id)) = self.export {
            exports::end_event(id, self.check().is_err());
        }
        // Intel's driver has one table for the files of events and of memory.
        let _files = imported_file::lock();
        for event in [self.done, self.failed] {
            if !event.is_null() {
                // SAFETY: this is the last owner, and no command of this process waits for it or will signal it.
                let _ = unsafe { call!(library, zeEventDestroy(event)) };
            }
        }
        // SAFETY: its events are destroyed.
        let _ = unsafe {
            if self.is_opened {
                call!(library, zeEventPoolCloseIpcHandle(self.pool))
            } else {
                call!(library, zeEventPoolDestroy(self.pool))
            }
        };
        if let Some((handle, Some(file), _)) = self.export
            && !self.context.driver().is_cpu_runtime()
        {
            // Intel's driver (26.27) leaves it open, and does not support `zeEventPoolPutIpcHandle`.
            handle.close(file);
        }
    }
}
