//! The C structures of Arrow.

use std::ffi::{c_char, c_void};

/// `ArrowSchema`: the type of an array.
#[repr(C)]
#[derive(Debug)]
pub struct Schema {
    /// The type, by Arrow's letters.
    pub(super) format: *const c_char,
    pub(super) name: *const c_char,
    pub(super) metadata: *const c_char,
    pub(super) flags: i64,
    pub(super) n_children: i64,
    pub(super) children: *mut *mut Self,
    /// The type of the values that the array's numbers refer to; else null.
    pub(super) dictionary: *mut Self,
    /// Frees the contents; `None` once that is done, or a consumer has moved the structure.
    pub(super) release: Option<unsafe extern "C" fn(*mut Self)>,
    pub(super) private_data: *mut c_void,
}

/// `ArrowArray`: the buffers of an array. The drop releases it, unless a consumer has moved it.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Array {
    pub length: i64,
    /// -1 if they are not counted yet.
    pub null_count: i64,
    /// The position of the first element in the buffers.
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    /// Of numbers: the bits that say which elements are no null, or null; the elements.
    pub buffers: *mut *const c_void,
    pub children: *mut *mut Self,
    pub dictionary: *mut Self,
    /// As of [`Schema`].
    pub release: Option<unsafe extern "C" fn(*mut Self)>,
    pub private_data: *mut c_void,
}

/// `ArrowDeviceArray`, which begins with an `ArrowArray`: an array with the device that its buffers are on.
#[repr(C)]
#[derive(Debug)]
pub struct DeviceArray {
    pub(super) array: Array,
    /// -1 for the host.
    pub(super) device_id: i64,
    /// By DLPack's numbers.
    pub(super) device_type: i32,
    /// An event after which the buffers may be read; null if that is now.
    pub(super) sync_event: *mut c_void,
    pub(super) reserved: [i64; 3],
}

// SAFETY: a structure has one owner, who may be any thread by Arrow's rules; nothing of it belongs to a thread.
unsafe impl Send for Schema {}
// SAFETY: as above.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Send for DeviceArray {}

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the structure is valid, and not released yet.
            unsafe { release(self) };
        }
    }
}
