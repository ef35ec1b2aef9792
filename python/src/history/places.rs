//! The lists of devices and pools, to which rows refer by index.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use zeusm::history::Place;
use zeusm::{Device, Runtime};

/// The index of nothing.
pub(super) const NONE: i64 = -1;

/// The devices and pools of some rows.
pub(super) struct Places {
    devices: Vec<(usize, Option<Device>)>,
    /// The addresses of the contexts' handles.
    contexts: Vec<usize>,
    /// By number, with the index.
    pools: BTreeMap<u32, (usize, Place)>,
}

impl Places {
    /// The devices of the runtime come first, in Level Zero's order.
    pub(super) fn new<'a>(places: impl Iterator<Item = &'a Place>) -> Self {
        let listed = Runtime::get().map_or(&[][..], Runtime::devices);
        let listed = listed.iter();
        let mut all = Self {
            devices: listed
                .map(|device| (device.handle().addr(), Some(device.clone())))
                .collect(),
            contexts: Vec::new(),
            pools: BTreeMap::new(),
        };
        let mut last = None;
        for place in places {
            // Rows that follow each other often have the same place.
            if last != Some(place) {
                all.add(place);
                last = Some(place);
            }
        }
        all
    }

    fn add(&mut self, place: &Place) {
        self.add_device(place.device);
        if !self.contexts.contains(&place.context) {
            self.contexts.push(place.context);
        }
        if place.pool != 0 {
            let next = self.pools.len();
            self.pools.entry(place.pool).or_insert((next, *place));
        }
    }

    /// Adds the device with this handle; 0 is none.
    pub(super) fn add_device(&mut self, handle: usize) {
        if handle != 0 && self.device(handle) == NONE {
            self.devices.push((handle, Device::of_handle(handle)));
        }
    }

    pub(super) fn kind(place: &Place) -> i64 {
        place.kind.map_or(NONE, |kind| kind as i64)
    }

    /// The index of the device with this handle.
    pub(super) fn device(&self, handle: usize) -> i64 {
        let mut handles = self.devices.iter().map(|(known, _)| *known);
        let index = handles.position(|known| known == handle);
        index.map_or(NONE, |index| index as i64)
    }

    pub(super) fn pool(&self, place: &Place) -> i64 {
        let pool = self.pools.get(&place.pool);
        pool.map_or(NONE, |(index, _)| *index as i64)
    }

    pub(super) fn devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let devices = PyList::empty(py);
        for (index, (_, device)) in self.devices.iter().enumerate() {
            let total = device.as_ref().map_or(u64::MAX, Device::memory_size);
            let entry = PyDict::new(py);
            entry.set_item("name", device.as_ref().map_or("?", Device::name))?;
            entry.set_item("index", index)?;
            entry.set_item("total", i64::try_from(total).unwrap_or(NONE))?;
            devices.append(entry)?;
        }
        Ok(devices)
    }

    pub(super) fn pools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut pools: Vec<_> = self.pools.values().collect();
        pools.sort_by_key(|(index, _)| *index);
        let list = PyList::empty(py);
        for (_, place) in pools {
            let entry = PyDict::new(py);
            entry.set_item("kind", Self::kind(place))?;
            entry.set_item("device", self.device(place.device))?;
            let mut contexts = self.contexts.iter();
            let context = contexts.position(|&context| context == place.context);
            entry.set_item("context", context)?;
            list.append(entry)?;
        }
        Ok(list)
    }
}
