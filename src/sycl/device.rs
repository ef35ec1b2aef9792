//! SYCL devices.

use std::ffi::{CString, c_int};

use level_zero_sys as sys;

use super::backend::DeviceType;
use super::classes::{ContextRef, Device, DeviceRef};
use super::error::Error;
use super::library::{Library, RawRef};
use super::reference::sealed;

impl DeviceRef {
    /// The device of SYCL's default selector, as `dpctl.SyclDevice()`. It may belong to any backend.
    ///
    /// # Errors
    /// [`Error::NoDpctl`], [`Error::NoDevice`].
    pub fn default_device() -> Result<Self, Error> {
        let library = Library::get()?;
        // SAFETY: the function takes no arguments, and returns null or a selector that the caller deletes.
        let selector = unsafe { (library.functions.selector_default)() };
        // SAFETY: as above.
        unsafe { Self::select(library, selector) }.ok_or(Error::NoDevice)
    }

    /// The device of a filter string such as `level_zero:gpu:0`, whose parts are optional (the extension
    /// `sycl_ext_oneapi_filter_selector`).
    ///
    /// # Errors
    /// [`Error::NoDpctl`]; [`Error::NoSuchDevice`] when the string is malformed or selects no device.
    pub fn from_filter(filter: &str) -> Result<Self, Error> {
        let library = Library::get()?;
        let none = || Error::NoSuchDevice(filter.to_owned());
        let text = CString::new(filter).map_err(|_| none())?;
        // SAFETY: the string outlives the call; the result is null or a selector that the caller deletes.
        let selector = unsafe { (library.functions.selector_filter)(text.as_ptr()) };
        // SAFETY: as above.
        unsafe { Self::select(library, selector) }.ok_or_else(none)
    }

    /// The device that a selector chooses; the selector is deleted.
    ///
    /// # Safety
    /// `selector` must be null or a selector of `library` without another owner.
    unsafe fn select(library: &'static Library, selector: RawRef) -> Option<Self> {
        if selector.is_null() {
            return None;
        }
        // SAFETY: the selector is alive, and deleted once; the device is null or a new reference.
        unsafe {
            let device = (library.functions.device_from_selector)(selector);
            (library.functions.selector_delete)(selector);
            Self::own(library, device)
        }
    }

    /// The native Level Zero device, which lives as long as the driver.
    ///
    /// # Errors
    /// [`Error::Backend`] when the device is of another backend, [`Error::Failed`] when there is no handle,
    /// [`Error::Unavailable`], [`Error::Thrown`].
    pub fn native(&self) -> Result<sys::ze_device_handle_t, Error> {
        self.require_level_zero()?;
        let library = self.library();
        // SAFETY: the reference is a `sycl::device *`, which is the `this` of the method. For Level Zero the method does not
        // add a reference to the handle.
        let handle = library.call(&library.throwing.device_native, |native| unsafe {
            native(self.as_raw())
        })?;
        match handle {
            0 => Err(Error::Failed("sycl::device::getNative")),
            handle => Ok(std::ptr::with_exposed_provenance_mut(handle)),
        }
    }

    /// The context of dpctl's default queues for this device, which is the default context of its platform.
    ///
    /// For a sub-device it is the default context of the platform as well, to which memory of the root device belongs,
    /// although dpctl creates a new context for each queue of a sub-device.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Thrown`] when SYCL cannot list its devices.
    pub fn default_context(&self) -> Result<ContextRef, Error> {
        let library = self.library();
        // SAFETY: the reference is alive; dpctl returns null, or a new reference to a context.
        let cached = library.call(&library.throwing.device_cached_context, |cached| unsafe {
            cached(self.as_raw())
        })?;
        // SAFETY: as above.
        unsafe { ContextRef::own(self.library(), cached) }
            .or_else(|| self.platform_context())
            .ok_or(Error::Failed("DPCTLPlatform_GetDefaultContext"))
    }

    fn platform_context(&self) -> Option<ContextRef> {
        let functions = self.functions();
        // SAFETY: the reference is alive; the platform is null or a new reference, used and deleted once; the
        // context is null or a new reference.
        unsafe {
            let platform = (functions.device_platform)(self.as_raw());
            if platform.is_null() {
                return None;
            }
            let context = (functions.platform_default_context)(platform);
            (functions.platform_delete)(platform);
            ContextRef::own(self.library(), context)
        }
    }

    /// The device's name, as the driver reports it.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn name(&self) -> Result<String, Error> {
        // SAFETY: the reference is alive; the result is null or a string that the caller deletes.
        let name = unsafe { (self.functions().device_name)(self.as_raw()) };
        self.library()
            .take_string(name)
            .ok_or(Error::Failed("DPCTLDevice_GetName"))
    }

    /// The type of the device.
    #[must_use]
    pub fn device_type(&self) -> DeviceType {
        DeviceType::from_dpctl(self.device_type_number())
    }

    fn device_type_number(&self) -> u32 {
        // SAFETY: the reference is alive.
        unsafe { (self.functions().device_type)(self.as_raw()) }
    }

    /// The number of the device among those of its backend and type, as in a filter string; `None` for a sub-device.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Thrown`].
    pub fn relative_id(&self) -> Result<Option<u32>, Error> {
        let calls = <Device as sealed::Class>::calls(self.functions());
        let library = self.library();
        // SAFETY: the reference is alive.
        let identifier = unsafe { (calls.backend)(self.as_raw()) } | self.device_type_number();
        // SAFETY: as above.
        let position = library.call(&library.throwing.device_position, |position| unsafe {
            position(self.as_raw(), identifier as c_int)
        })?;
        Ok(u32::try_from(position).ok())
    }

    /// The filter string that selects the device: `backend:type:number`.
    ///
    /// # Errors
    /// [`Error::SubDevice`] for a sub-device; as [`relative_id`](Self::relative_id).
    pub fn filter_string(&self) -> Result<String, Error> {
        match self.relative_id()? {
            Some(id) => Ok(format!("{}:{}:{id}", self.backend(), self.device_type())),
            None => Err(Error::SubDevice(self.name()?)),
        }
    }
}
