//! The current CUDA context of a copy.

use std::ffi::c_int;
use std::ptr;

use super::library::{DevicePointer, Driver, Handle};
use super::{Error, Interface, Order};

/// `CUpointer_attribute`.
const CONTEXT: c_int = 1;
const DEVICE_POINTER: c_int = 3;
const DEVICE_ORDINAL: c_int = 9;
const RANGE_START: c_int = 11;
const RANGE_SIZE: c_int = 12;

/// The context of an array's memory, which is the thread's current one until this is dropped.
pub(super) struct Current {
    pub(super) driver: &'static Driver,
    /// The device whose primary context was retained, as its memory belongs to no context.
    retained: Option<c_int>,
}

impl Current {
    /// Makes the context of `array` current, waits for the work that an access has to follow, and checks that the elements are
    /// within one allocation. Returns the device's pointer to the element with all indices 0, too.
    pub(super) fn enter(array: &Interface) -> Result<(Self, DevicePointer), Error> {
        let driver = Driver::get()?;
        let mut context: Handle = ptr::null_mut();
        attribute(driver, array.pointer, CONTEXT, &mut context).map_err(|cause| {
            Error::Pointer {
                pointer: array.pointer,
                cause: Box::new(cause),
            }
        })?;
        let mut retained = None;
        if context.is_null() {
            let mut device: c_int = 0;
            attribute(driver, array.pointer, DEVICE_ORDINAL, &mut device)?;
            // SAFETY: the context is written, and released when this is dropped.
            driver.check("cuDevicePrimaryCtxRetain", unsafe {
                (driver.retain_primary)(&raw mut context, device)
            })?;
            retained = Some(device);
        }
        // SAFETY: the context is valid: it owns the array's memory, or it has been retained.
        let pushed = driver.check("cuCtxPushCurrent", unsafe {
            (driver.push_context)(context)
        });
        if let Err(error) = pushed {
            release(driver, retained);
            return Err(error);
        }
        let current = Self { driver, retained };
        current.follow(array.order)?;
        let mut pointer: DevicePointer = 0;
        attribute(driver, array.pointer, DEVICE_POINTER, &mut pointer)?;
        let (mut base, mut size): (DevicePointer, usize) = (0, 0);
        attribute(driver, array.pointer, RANGE_START, &mut base)?;
        attribute(driver, array.pointer, RANGE_SIZE, &mut size)?;
        let base = base as usize;
        let layout = &array.layout;
        layout.check_within(pointer as usize, base..base + size)?;
        Ok((current, pointer))
    }

    /// Waits for the producer's work.
    fn follow(&self, order: Order) -> Result<(), Error> {
        match order {
            Order::Nothing => Ok(()),
            // SAFETY: the context is current.
            Order::Context => self.driver.check("cuCtxSynchronize", unsafe {
                (self.driver.synchronize_context)()
            }),
            // SAFETY: the producer guarantees that its stream is valid while the array is.
            Order::Stream(stream) => self.driver.check("cuStreamSynchronize", unsafe {
                (self.driver.synchronize_stream)(ptr::with_exposed_provenance_mut(stream))
            }),
        }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // SAFETY: `enter` pushed the context on this thread, which is the only one that has this object. An error cannot be
        // handled.
        unsafe { (self.driver.pop_context)(&raw mut popped) };
        release(self.driver, self.retained);
    }
}

fn release(driver: &Driver, retained: Option<c_int>) {
    if let Some(device) = retained {
        // SAFETY: the primary context was retained.
        unsafe { (driver.release_primary)(device) };
    }
}

/// Queries an attribute whose type is `T`.
fn attribute<T>(
    driver: &Driver,
    pointer: usize,
    which: c_int,
    answer: &mut T,
) -> Result<(), Error> {
    // SAFETY: any pointer may be asked about; the callers pass a variable of the attribute's type.
    let code = unsafe {
        (driver.pointer_attribute)(
            ptr::from_mut(answer).cast(),
            which,
            pointer as DevicePointer,
        )
    };
    driver.check("cuPointerGetAttribute", code)
}
