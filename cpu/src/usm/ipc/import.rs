//! `zeMemOpenIpcHandle`, `zeMemCloseIpcHandle` and `zeMemGetIpcHandleFromFileDescriptorExp`.

use std::ffi::c_void;
use std::fs::File;
use std::io::Seek;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use level_zero_sys as sys;
use level_zero_sys::extensions::ZE_RESULT_ERROR_ADDRESS_NOT_FOUND;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use zeusm_process::{duplicate, inode};

use super::super::query::owner_asked_for;
use super::handle::{Handle, Subject};
use crate::abi::arguments::check_flags;
use crate::abi::entry::Address;
use crate::abi::result::{ZeResult, described, ensure};
use crate::context::Context;
use crate::device::Device;
use crate::memory::{self, Part, Record, exports, is_memory_file};

const FLAGS: u32 = sys::ZE_IPC_MEMORY_FLAG_BIAS_CACHED.0 | sys::ZE_IPC_MEMORY_FLAG_BIAS_UNCACHED.0;

/// `zeMemOpenIpcHandle`: a new mapping each time, of the kind that the allocation has.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` when the handle is invalid or its file cannot be opened: its process is gone or
/// not accessible, or the descriptor is closed. `ZE_RESULT_ERROR_ADDRESS_NOT_FOUND` when the allocation has been freed.
/// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY` when the system does not map the file.
pub fn open(
    context: Arc<Context>,
    device: &'static Device,
    handle: sys::ze_ipc_mem_handle_t,
    wanted: sys::ze_ipc_memory_flags_t,
    pointer: &mut *mut c_void,
) -> ZeResult {
    check_flags(wanted, FLAGS)?;
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let (file, record) = match Handle::bare(&handle.data) {
        Some(descriptor) => {
            let mut file = duplicate(descriptor)
                .filter(is_memory_file)
                .ok_or(invalid)?;
            let (_, record) = exported(&mut file)?;
            (file, record)
        }
        None => {
            let handle = Handle::decode(&handle.data, Subject::Memory)?;
            let mut file = find_file(&handle).ok_or(invalid)?;
            let (position, record) = exported(&mut file)?;
            ensure(position == handle.place, invalid)?;
            ensure(record.id == handle.id, ZE_RESULT_ERROR_ADDRESS_NOT_FOUND)?;
            (file, record)
        }
    };
    let address = memory::import(&file, &record, context.id, device.handle() as u64);
    *pointer = address.ok_or_else(|| unmapped(&record))? as *mut c_void;
    Ok(())
}

/// `zeMemCloseIpcHandle`. The pointer is invalid at once; memory that commands in flight use is unmapped when they are
/// complete. Intel's driver takes any pointer into the mapping, in any of its contexts, and Intel MPI gives it the one that it
/// has copied with; by the letter, the pointer is the one that [`open`] gave in this context.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a pointer into nothing that was opened.
pub fn close(context: Arc<Context>, Address(pointer): Address) -> ZeResult {
    let owner = owner_asked_for(&context);
    let base = match owner {
        Some(_) => Some(pointer),
        None => memory::find(pointer).map(|it| it.base()),
    };
    base.and_then(|base| {
        memory::remove(base, |it| {
            it.is_import() && owner.is_none_or(|owner| it.request.context == owner)
        })
    })
    .map(drop)
    .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}

/// `zeMemGetIpcHandleFromFileDescriptorExp`: the descriptor stays the caller's, to be closed after opening.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a descriptor of anything else, `ZE_RESULT_ERROR_ADDRESS_NOT_FOUND` when the
/// allocation has been freed.
pub fn from_descriptor(
    _: Arc<Context>,
    descriptor: u64,
    handle: &mut sys::ze_ipc_mem_handle_t,
) -> ZeResult {
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let descriptor = i32::try_from(descriptor).map_err(|_| invalid)?;
    let mut file = duplicate(descriptor).ok_or(invalid)?;
    let (position, record) = exported(&mut file)?;
    let inode = file.metadata().map_err(|_| invalid)?.ino();
    handle.data = Handle::new(descriptor, inode, position, record.id).encode(Subject::Memory);
    Ok(())
}

/// The handle's file, through a descriptor of our own.
///
/// No other file is even duplicated: the close of any descriptor of a file ends all locks that the program has of it (`fcntl`).
pub fn find_file(handle: &Handle) -> Option<File> {
    let own = inode(handle.descriptor).filter(|&inode| inode == handle.inode);
    own.and_then(|_| duplicate(handle.descriptor))
        .filter(|file| is_of(file, handle))
        .or_else(|| duplicate_from_process(handle).filter(|file| is_of(file, handle)))
}

/// A descriptor for what the handle's descriptor names in the process that made it.
fn duplicate_from_process(handle: &Handle) -> Option<File> {
    let path = format!("/proc/{}/fd/{}", handle.process, handle.descriptor);
    // The process may be in another namespace, or not accessible by /proc.
    if std::fs::metadata(path).is_ok_and(|about| about.ino() != handle.inode) {
        return None;
    }
    let process = Pid::from_raw(handle.process.cast_signed())?;
    let process = rustix::process::pidfd_open(process, PidfdFlags::empty()).ok()?;
    let flags = PidfdGetfdFlags::empty();
    let file = rustix::process::pidfd_getfd(process, handle.descriptor, flags).ok()?;
    Some(File::from(file))
}

/// Whether it is the handle's file and one of this runtime's, so a forged handle cannot refer to another file.
pub(super) fn is_of(file: &File, handle: &Handle) -> bool {
    is_memory_file(file) && file.metadata().is_ok_and(|it| it.ino() == handle.inode)
}

/// The result code for memory that the system does not map, which is described.
fn unmapped(record: &Record) -> sys::ze_result_t {
    let text = format_args!(
        "the system does not map {} bytes of the exporting process's memory: the limit of this process's address space \
         (RLIMIT_AS), or of its mappings, is reached",
        record.size
    );
    described(sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, text)
}

/// The position of a descriptor of a memory file, and the exporter's record of the memory, with the size that the handle lacks.
fn exported(file: &mut File) -> ZeResult<(u64, Record)> {
    let invalid = sys::ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let position = file.stream_position().map_err(|_| invalid)?;
    let record = exports::read_record(file)
        .ok_or(invalid)?
        .ok_or(ZE_RESULT_ERROR_ADDRESS_NOT_FOUND)?;
    let record = Part::at(position).map_or(Some(record), |part| part.of(&record));
    Ok((position, record.ok_or(invalid)?))
}
