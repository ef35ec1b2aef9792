//! The simulated machines and their GPU models, as data.

mod model;

pub(crate) use model::{BATTLEMAGE, LUNAR_LAKE, Model};

/// A GPU of a machine and its addresses.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) model: &'static Model,
    /// The PCI address.
    pub(crate) pci: &'static str,
    /// The number of the render node, `/dev/dri/renderD<n>`.
    pub(crate) render: u32,
    /// The minor number of the memory device (major 1: null, zero or full) that implements the nodes. Real devices are
    /// needed so that the nodes can be opened; the minor number identifies the GPU.
    pub(crate) minor: u32,
}

/// A named configuration of GPUs.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) name: &'static str,
    pub(crate) slots: &'static [Slot],
}

/// The major number of the character devices that implement the nodes.
pub(crate) const MAJOR: u32 = 1;

const INTEGRATED: Slot = Slot {
    model: &LUNAR_LAKE,
    pci: "0000:00:02.0",
    render: 128,
    minor: 3,
};
const DISCRETE: Slot = Slot {
    model: &BATTLEMAGE,
    pci: "0000:03:00.0",
    ..INTEGRATED
};
const SECOND: Slot = Slot {
    pci: "0000:08:00.0",
    render: 129,
    minor: 5,
    ..DISCRETE
};

pub(crate) const MACHINES: [Machine; 3] = [
    Machine {
        name: "lnl",
        slots: &[INTEGRATED],
    },
    Machine {
        name: "bmg",
        slots: &[DISCRETE],
    },
    Machine {
        name: "bmg2",
        slots: &[DISCRETE, SECOND],
    },
];

pub(crate) fn named(name: &str) -> Option<&'static Machine> {
    MACHINES.iter().find(|machine| machine.name == name)
}
