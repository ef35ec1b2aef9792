//! The default pools of allocations: one for each context, device and kind.

use std::env;

use once_cell::race::OnceBool;
use zeusm_process::Local;
use zeusm_process::variables::switch;

use super::LevelZeroProvider;
use crate::context::Context;
use crate::device::Device;
use crate::kind::UsmKind;
use crate::pool::{Options, Pool};
use crate::runtime::POOL_VARIABLE;

/// The variable of the CPU runtime's checker, which cannot tell the blocks of a pool from each other.
const CHECK_VARIABLE: &str = "ZEUSM_CHECK";

/// Whether the default pools are enabled, by [`POOL_VARIABLE`]; read once in a process. Without it, they are not under the checker.
#[must_use]
pub fn pools_enabled() -> bool {
    static ENABLED: OnceBool = OnceBool::new();
    // A wrong value is an error of the runtime's selection, which comes first.
    let chosen = || switch(env::var_os, POOL_VARIABLE).unwrap_or_default();
    let is_checked = || env::var_os(CHECK_VARIABLE).is_some_and(|it| !it.is_empty() && it != "0");
    ENABLED.get_or_init(|| chosen().unwrap_or_else(|| !is_checked()))
}

/// A context's pools in this process, by device and kind: a linked list that only grows, so that it is read without a lock.
#[derive(Debug, Default)]
struct DefaultPools(Local<Node>);

/// The pools of one device, and the rest of the list.
#[derive(Debug)]
struct Node {
    device: Device,
    pools: [Local<Pool<LevelZeroProvider>>; 3],
    next: DefaultPools,
}

impl DefaultPools {
    /// The pool for `device` and `kind`, made on first use. `context` must not have a strong reference to these pools.
    fn get(
        &self,
        context: impl FnOnce() -> Context,
        device: &Device,
        kind: UsmKind,
    ) -> &Pool<LevelZeroProvider> {
        let mut list = self;
        loop {
            let node = list.0.get_or_init(|| Node {
                device: device.clone(),
                pools: Default::default(),
                next: Self::default(),
            });
            if node.device == *device {
                return node.pools[kind as usize].get_or_init(|| {
                    Pool::new(
                        LevelZeroProvider::new(&context(), device, kind),
                        Options::default(),
                    )
                });
            }
            list = &node.next;
        }
    }
}

impl Context {
    /// Passes the context's default pool for `device` and `kind` to `then`; `None` when the pools were dropped with the
    /// context's last strong reference, and only allocations still refer to the context.
    pub(crate) fn with_pool<T>(
        &self,
        device: &Device,
        kind: UsmKind,
        then: impl FnOnce(&Pool<LevelZeroProvider>) -> T,
    ) -> Option<T> {
        self.with_attachment(|pools: &DefaultPools, weak_clone| {
            then(pools.get(weak_clone, device, kind))
        })
    }

    /// The default pool for allocations of `kind` for `device`; `None` when only allocations refer to the context.
    #[must_use]
    pub fn pool(&self, device: &Device, kind: UsmKind) -> Option<Pool<LevelZeroProvider>> {
        self.with_pool(device, kind, Pool::clone)
    }
}
