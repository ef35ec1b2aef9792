//! Arrays in through DLPack.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::class::invalid;
use super::device::Numbered;
use super::pointer::in_default_place;
use super::{UsmArray, create, dtype, give};
use crate::dpctl::Dpctl;
use crate::errors::{Explain, OrRaise};
use crate::memory::{Owner, PyMemory};
use crate::place::Place;
use crate::spot::{Spot, SyclQueue};
use zeusm::dlpack::{Device, Form, Managed, Tensor, abi};
use zeusm::suai::{self, Allocation};
use zeusm::usm::UsmKind;

/// An array in USM of any object with `__dlpack__`: the same memory when that is USM, else a copy.
///
/// Memory of a SYCL device (kDLOneAPI) is taken in place. Memory of the host (kDLCPU) is taken in place when it is USM of
/// the default context, like a NumPy view of a shared array; other memory of the host is copied to USM-device memory.
///
/// Parameters
/// ----------
/// x
///     An object with `__dlpack__` and `__dlpack_device__`: an array of dpnp, dpctl, NumPy or PyTorch, for instance.
/// device : optional
///     Where the array has to be: a `dpctl.SyclQueue`, `SyclContext` or `SyclDevice`, a filter string, or a pair like
///     `(14, 0)`. By default where `x` is.
/// copy : bool, optional
///     None for a copy where one is needed, False for none in any case, True for one.
///
/// Returns
/// -------
/// UsmArray
///
/// Raises
/// ------
/// BufferError
///     When `x` is on a device that cannot be used, is of a type that arrays do not have, describes memory that is not its
///     own, or needs a copy when `copy` is False.
/// TypeError
///     When `x` does not have the two methods, or gives no capsule.
/// ValueError
///     When its capsule was used before.
///
/// Examples
/// --------
/// >>> import numpy, zeusm
/// >>> zeusm.from_dlpack(numpy.arange(4.0))[1:].copy_to_host()
/// array([1., 2., 3.])
#[pyfunction]
#[pyo3(signature = (x, /, *, device=None, copy=None))]
pub(crate) fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, PyAny>>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    let py = x.py();
    let spot = device
        .filter(|device| !device.is_none())
        .map(|device| wanted(device))
        .transpose()?;
    let offer = Offer::read(&capsule(x, copy)?)?;
    let tensor = &offer.tensor;
    if !dtype::is_supported(tensor.item) {
        return Err(PyBufferError::new_err(dtype::unsupported(tensor.item)));
    }
    let array = match tensor.device {
        Device::OneApi(number) => usm_of_device(py, &offer, number)?,
        Device::Cpu => match usm_of_host(py, &offer)? {
            Some(array) => array,
            None => return copy_of_host(py, &offer, spot, copy),
        },
        Device::Other(_) => {
            return Err(PyBufferError::new_err(format!(
                "the tensor is on {}, which is neither a SYCL device nor the host",
                tensor.device
            )));
        }
    };
    create::placed(py, array, None, spot, None, copy).explain(py, |error| match copy {
        Some(false) => PyBufferError::new_err(error.value(py).to_string()),
        _ => error,
    })
}

/// Where a DLPack device or a SYCL object says.
fn wanted(device: &Bound<'_, PyAny>) -> PyResult<Arc<Spot>> {
    let py = device.py();
    let Ok(pair) = device.cast::<PyTuple>() else {
        return Spot::read(device, "device");
    };
    let (kind, id) = pair.extract::<(i32, i32)>().explain(py, |_| {
        PyTypeError::new_err(format!(
            "a DLPack device is a pair of integers, not {device}"
        ))
    })?;
    match Device::from(abi::Device { kind, id }) {
        Device::OneApi(number) => Ok(Arc::clone(Numbered::get(py, number)?.spot())),
        other => Err(PyValueError::new_err(format!(
            "an array in USM cannot be on {other}, only on a SYCL device, (14, n)"
        ))),
    }
}

/// Asks for a capsule: of the newest form, ready to be read, and from devices that have no SYCL, on the host.
fn capsule<'py>(x: &Bound<'py, PyAny>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let (Some(give), Some(tell)) = (
        x.getattr_opt(intern!(py, "__dlpack__"))?,
        x.getattr_opt(intern!(py, "__dlpack_device__"))?,
    ) else {
        return Err(PyTypeError::new_err(format!(
            "{} does not have __dlpack__ and __dlpack_device__",
            x.get_type().name()?
        )));
    };
    let (kind, id) = tell.call0()?.extract::<(i32, i32)>()?;
    let stream = PyDict::new(py);
    let keywords = PyDict::new(py);
    match Device::from(abi::Device { kind, id }) {
        Device::OneApi(number) => {
            let queue = match own_queue(x)? {
                Some(queue) => queue,
                None => Numbered::get(py, number)?.waiting(py)?,
            };
            stream.set_item("stream", queue)?;
            keywords.update(stream.as_mapping())?;
        }
        Device::Other(_) if copy != Some(false) => {
            keywords.set_item("dl_device", (abi::CPU, 0))?;
        }
        _ => {}
    }
    keywords.set_item("max_version", (abi::VERSION.major, abi::VERSION.minor))?;
    if copy == Some(false) {
        keywords.set_item("copy", false)?;
    }
    // Exporters from before DLPack 1.0 know nothing but the stream and never copy; some know no queue of dpctl.
    for keywords in [&keywords, &stream] {
        match give.call((), Some(keywords)) {
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {}
            answer => {
                let capsule = answer?;
                if let Some(queue) = keywords.get_item("stream")? {
                    SyclQueue::new(&queue)?.finish(py)?;
                }
                return Ok(capsule);
            }
        }
    }
    give.call0()
}

/// The queue that arrays of dpctl's kind belong to. They leave it as it is when asked for it; another queue they would have
/// wait by a barrier, which leaves some bytes behind in SYCL.
fn own_queue<'py>(x: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = x.py();
    // Ours wait by themselves, and may have no queue yet.
    if x.is_instance_of::<UsmArray>() || x.is_instance_of::<PyMemory>() {
        return Ok(None);
    }
    match x.getattr_opt(intern!(py, "sycl_queue"))? {
        Some(queue) if queue.is_instance(Dpctl::get(py)?.queue.bind(py))? => Ok(Some(queue)),
        _ => Ok(None),
    }
}

/// A capsule that was offered and not taken yet: whatever is wrong with it, it stays its maker's.
struct Offer<'py> {
    capsule: Bound<'py, PyAny>,
    form: Form,
    structure: *mut c_void,
    tensor: Tensor,
}

impl<'py> Offer<'py> {
    fn read(capsule: &Bound<'py, PyAny>) -> PyResult<Self> {
        for form in Form::ALL {
            if let Some(structure) = give::held(capsule.as_ptr(), form) {
                // SAFETY: by DLPack's rules a capsule of this name holds a valid structure of this form.
                let tensor = unsafe { Managed::tensor(form, structure) }.or_raise()?;
                return Ok(Self {
                    capsule: capsule.clone(),
                    form,
                    structure,
                    tensor,
                });
            }
            // SAFETY: the interpreter is attached; any object may be asked.
            if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), form.used_name().as_ptr()) } != 0 {
                return Err(PyValueError::new_err(
                    "the DLPack capsule was used before; a tensor can be taken once",
                ));
            }
        }
        Err(PyTypeError::new_err(format!(
            "__dlpack__ must return a capsule named dltensor_versioned or dltensor, not {}",
            capsule.repr()?
        )))
    }

    /// Takes the structure over.
    fn take(&self) -> Managed {
        // SAFETY: the name is static; `read` has found the structure under the other name, so that nobody else has taken
        // it, and from here on nobody else will.
        unsafe {
            ffi::PyCapsule_SetName(self.capsule.as_ptr(), self.form.used_name().as_ptr());
            Managed::new(self.form, self.structure)
        }
    }

    /// The array in USM at the tensor's pointer.
    fn array(&self, py: Python<'_>, kind: UsmKind, spot: Arc<Spot>) -> PyResult<UsmArray> {
        let tensor = &self.tensor;
        let extent = tensor.layout.extent();
        let (pointer, before) = if extent.is_empty() {
            (tensor.pointer, tensor.layout.offset())
        } else {
            let itemsize = tensor.layout.itemsize().cast_signed();
            (
                tensor.pointer.wrapping_add_signed(extent.start()),
                extent.start() / itemsize,
            )
        };
        let layout = tensor
            .layout
            .rebased(before)
            .map_err(|error| invalid(&error))?;
        let owner = Bound::new(py, TakenTensor(self.take()))?;
        let owner = Owner::Object(owner.into_any().unbind());
        let memory = spot.memory(pointer, extent.len(), kind, tensor.read_only, owner);
        UsmArray::new(&create::object(py, memory)?, tensor.item, layout)
    }

    fn check_within(&self, base: usize, size: usize) -> PyResult<()> {
        let extent = self.tensor.layout.extent();
        extent
            .check_within(self.tensor.pointer, Allocation { base, size })
            .map_err(|error: suai::Error| PyBufferError::new_err(error.to_string()))
    }
}

/// A DLPack tensor that was taken over from another package; gives it back when nobody needs it any more.
#[pyclass(name = "_TakenTensor", module = "zeusm", frozen)]
struct TakenTensor(#[allow(dead_code)] Managed);

/// The array on a SYCL device.
fn usm_of_device(py: Python<'_>, offer: &Offer<'_>, number: i32) -> PyResult<UsmArray> {
    let device = Numbered::get(py, number)?;
    if offer.tensor.layout.elements() == 0 {
        // Its kind is that of the memory it was made in, if there is any.
        let found = Place::of_pointer(&device.context, offer.tensor.pointer);
        let kind = found.map_or(UsmKind::Device, |(_, attributes)| attributes.kind);
        return offer.array(py, kind, Arc::clone(device.spot()));
    }
    let (place, attributes) =
        Place::of_pointer(&device.context, offer.tensor.pointer).map_err(|error| {
            if !is_unknown(py, &error) {
                return error;
            }
            PyBufferError::new_err(format!(
                "the tensor's data is not in the default context of device {number}: {}",
                error.value(py)
            ))
        })?;
    offer.check_within(attributes.base, attributes.size)?;
    // dpctl's queue is of the root device; memory of a part of it gets one of its own.
    let spot = if place.device() == device.spot().place().device() {
        Arc::clone(device.spot())
    } else {
        Spot::new(py, place, None)
    };
    offer.array(py, attributes.kind, spot)
}

/// Whether a pointer was looked up and not found, and nothing else went wrong.
fn is_unknown(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyValueError>(py)
}

/// The array in memory of the host, if that is USM of the default context.
fn usm_of_host(py: Python<'_>, offer: &Offer<'_>) -> PyResult<Option<UsmArray>> {
    if offer.tensor.layout.elements() == 0 {
        return Ok(None);
    }
    let (place, attributes) = match in_default_place(py, offer.tensor.pointer) {
        Ok(found) => found,
        Err(error) if is_unknown(py, &error) => return Ok(None),
        Err(error) => return Err(error),
    };
    offer.check_within(attributes.base, attributes.size)?;
    let spot = Spot::new(py, place, None);
    offer.array(py, attributes.kind, spot).map(Some)
}

/// A copy in USM of memory of the host.
fn copy_of_host(
    py: Python<'_>,
    offer: &Offer<'_>,
    spot: Option<Arc<Spot>>,
    copy: Option<bool>,
) -> PyResult<UsmArray> {
    if copy == Some(false) {
        return Err(PyBufferError::new_err(
            "the tensor is in memory of the host that is not USM; it takes a copy, and copy is False",
        ));
    }
    let spot = spot.map_or_else(|| Spot::default_one(py), Ok)?;
    let tensor = &offer.tensor;
    // A copy is nobody's but ours, so that it may be written to.
    let taken = offer.take();
    let (from, item) = (tensor.pointer, tensor.item);
    // SAFETY: the producer vouches for its memory until it gets the structure back.
    unsafe { create::copied_from_host(py, from, item, &tensor.layout, spot, taken) }
}
