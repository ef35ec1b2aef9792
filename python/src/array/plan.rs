//! The plan of an array: all that is decided before memory is touched.
//!
//! The arguments of a call are parsed and resolved once, to what it [asked](Asked) for. With what the source is, that is a
//! [`Plan`], which a maker executes.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::class::UsmArray;
use crate::errors::OrRaise;
use crate::parse::{self, dtype, shape, usm_kind};
use crate::resolve::{self, ContextDevice, DlpackDevice, QueueBinding, default_binding};
use zeusm::dlpack::{Device, abi};
use zeusm::suai::{ElementType, ItemType, Layout, Order};
use zeusm::usm::UsmKind;

/// An array to make: what the elements are, where they come to be, and whether they are copied.
pub(super) struct Plan {
    /// The type of the elements.
    pub(super) element: ElementType,
    /// The elements of the source, or those of an empty array.
    pub(super) layout: Layout,
    /// The kind of the memory.
    pub(super) kind: UsmKind,
    /// The context, the device and the queue of the memory.
    pub(super) binding: Arc<QueueBinding>,
    /// The order of a copy in memory; `None` for that of the source.
    pub(super) order: Option<Order>,
    /// Whether the elements are in new memory. Else the source is USM, and is used in place.
    pub(super) copy: bool,
}

/// What a call asks for. What it leaves open is as in the source or, without USM as the source, the default.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) element: Option<ElementType>,
    pub(super) kind: Option<UsmKind>,
    pub(super) binding: Option<Arc<QueueBinding>>,
    pub(super) order: Option<Order>,
    /// As in the array API: never, always, or only if needed.
    pub(super) copy: Option<bool>,
}

impl Asked {
    /// Parses and resolves the arguments that the functions have in common. `device` and `queue` are synonyms.
    pub(super) fn read(
        dtype: Option<&Bound<'_, PyAny>>,
        usm_type: Option<&str>,
        device: Option<&Bound<'_, PyAny>>,
        queue: Option<&Bound<'_, PyAny>>,
        order: Option<&str>,
    ) -> PyResult<Self> {
        Ok(Self {
            element: dtype.map(dtype::read).transpose()?,
            kind: usm_type.map(usm_kind).transpose()?,
            order: order.map_or(Ok(None), shape::order_or_kept)?,
            binding: match (device, queue) {
                (Some(_), Some(_)) => {
                    return Err(PyTypeError::new_err(
                        "give either device or queue, not both",
                    ));
                }
                (Some(device), None) => Some(binding(device, "device")?),
                (None, Some(queue)) => Some(binding(queue, "queue")?),
                (None, None) => None,
            },
            copy: None,
        })
    }

    /// Refuses elements of another type than asked for.
    pub(super) fn check_element(&self, memory: &str, found: &ElementType) -> PyResult<()> {
        match &self.element {
            Some(wanted) if wanted != found => Err(PyTypeError::new_err(format!(
                "{memory} of type {} is not converted to {}, which is computing: take it as it is, and convert it by dpnp \
                 (dpnp.from_dlpack(array).astype)",
                dtype::name(found),
                dtype::name(wanted),
            ))),
            _ => Ok(()),
        }
    }
}

impl Plan {
    /// An array of a given shape.
    pub(super) fn empty(py: Python<'_>, mut asked: Asked, shape: &[i64]) -> PyResult<Self> {
        let element = asked.element.take();
        let element = element.unwrap_or(ElementType::Item(ItemType::FLOAT64));
        let order = asked.order.unwrap_or(Order::RowMajor);
        let layout = Layout::contiguous(shape, order, element.size()).or_raise()?;
        Self::elsewhere(py, asked, "", element, layout)
    }

    /// The elements of an array in USM, which are copied only if that is asked for or needed.
    pub(super) fn of_usm(asked: Asked, array: &UsmArray) -> PyResult<Self> {
        asked.check_element("USM", &array.element)?;
        let (memory, layout) = (array.memory(), &array.layout);
        let at = memory.context_device();
        let is_there = asked.kind.is_none_or(|kind| kind == memory.kind)
            && asked.binding.as_ref().is_none_or(|to| is_at(at, to));
        let is_ordered = match asked.order {
            None => true,
            Some(Order::RowMajor) => layout.is_c_contiguous(),
            Some(Order::ColumnMajor) => layout.is_f_contiguous(),
        };
        let fits = is_there && is_ordered;
        if !fits && asked.copy == Some(false) {
            return Err(PyValueError::new_err(match is_there {
                true => {
                    "the array is in another order in memory; a copy is needed and copy is False"
                        .to_owned()
                }
                false => needs_copy(memory.kind, at),
            }));
        }
        Ok(Self {
            kind: asked.kind.unwrap_or(memory.kind),
            binding: asked.binding.unwrap_or_else(|| Arc::clone(&memory.binding)),
            order: asked.order,
            copy: !fits || asked.copy == Some(true),
            ..Self::copy_of(array)
        })
    }

    /// Elements that are not in USM yet.
    pub(super) fn elsewhere(
        py: Python<'_>,
        asked: Asked,
        memory: &str,
        element: ElementType,
        layout: Layout,
    ) -> PyResult<Self> {
        asked.check_element(memory, &element)?;
        if !dtype::is_supported(&element) {
            return Err(PyTypeError::new_err(dtype::unsupported(&element)));
        }
        Ok(Self {
            element,
            layout,
            kind: asked.kind.unwrap_or(UsmKind::Device),
            binding: match asked.binding {
                Some(binding) => binding,
                None => Arc::clone(default_binding(py)?),
            },
            order: asked.order,
            copy: true,
        })
    }

    /// A copy of an array beside it: of the same kind, on the same queue, in the same order.
    pub(super) fn copy_of(array: &UsmArray) -> Self {
        Self {
            element: array.element.clone(),
            layout: array.layout.clone(),
            kind: array.memory().kind,
            binding: Arc::clone(&array.memory().binding),
            order: None,
            copy: true,
        }
    }

    /// The elements of the source, with the dimensions in the order of the new memory, and their layout there, where there are
    /// no gaps between them.
    pub(super) fn packed(&self) -> PyResult<(Layout, Layout)> {
        let layout = &self.layout;
        let shape: Vec<i64> = layout.shape().iter().map(|&size| size as i64).collect();
        let contiguous = |order| Layout::contiguous(&shape, order, layout.itemsize());
        let found = match self.order {
            None => layout.packed(),
            Some(Order::RowMajor) => contiguous(Order::RowMajor).map(|copy| (layout.clone(), copy)),
            Some(Order::ColumnMajor) => layout
                .reversed()
                .and_then(|elements| Ok((elements, contiguous(Order::ColumnMajor)?))),
        };
        found.or_raise()
    }
}

/// The queue binding of the keyword `device`, if it is given.
pub(super) fn device(device: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Arc<QueueBinding>>> {
    device.map(|device| binding(device, "device")).transpose()
}

/// The queue binding of a SYCL object, or of a pair of DLPack such as `(14, 0)`.
pub(super) fn binding(object: &Bound<'_, PyAny>, role: &str) -> PyResult<Arc<QueueBinding>> {
    if !object.is_instance_of::<PyTuple>() {
        return resolve::binding(object, role);
    }
    let (kind, id) = parse::dlpack_device(object, role)?;
    match Device::from(abi::Device { kind, id }) {
        Device::OneApi(number) => {
            let device = DlpackDevice::get(object.py(), number)?;
            Ok(Arc::clone(&device.binding))
        }
        other => Err(PyValueError::new_err(format!(
            "an array in USM cannot be on {other}, only on a SYCL device, (14, n)"
        ))),
    }
}

/// Whether memory is in the context and on the device of a binding.
pub(super) fn is_at(own: &ContextDevice, binding: &QueueBinding) -> bool {
    let given = binding.context_device();
    own.shares_context(given) && own.device() == given.device()
}

/// The message of a refused copy.
pub(super) fn needs_copy(kind: UsmKind, at: &ContextDevice) -> String {
    let device = at.device();
    format!("the array is in USM-{kind} memory on {device}; a copy is needed and copy is False")
}
