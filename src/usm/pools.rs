//! The pools behind ordinary allocations: one for each context, device and kind.

use std::env;
use std::sync::OnceLock;

use super::LevelZero;
use crate::context::Context;
use crate::device::Device;
use crate::kind::UsmKind;
use crate::pool::{Options, Pool};
use crate::process::Local;

/// The environment variable that turns the pools off: with `0`; anything else leaves them on.
pub const POOL_VARIABLE: &str = "ZEUSM_POOL";

/// Whether ordinary allocations come from pools; the first call decides it for the process.
#[must_use]
pub fn is_default() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| env::var_os(POOL_VARIABLE).is_none_or(|value| value != "0"))
}

/// A context's pools in this process, by device and kind: a list that only grows, so that it is read without a lock.
#[derive(Debug, Default)]
struct DefaultPools(Local<Node>);

#[derive(Debug)]
struct Node {
    device: Device,
    pools: [Local<Pool<LevelZero>>; 3],
    others: DefaultPools,
}

impl DefaultPools {
    /// The pool for `device` and `kind`, made if need be. `context` must not keep these pools alive.
    fn get(
        &self,
        context: impl FnOnce() -> Context,
        device: &Device,
        kind: UsmKind,
    ) -> &Pool<LevelZero> {
        let mut list = self;
        loop {
            let node = list.0.get_or_init(|| Node {
                device: device.clone(),
                pools: Default::default(),
                others: Self::default(),
            });
            if node.device == *device {
                return node.pools[kind as usize].get_or_init(|| {
                    Pool::new(LevelZero::new(&context(), device, kind), Options::default())
                });
            }
            list = &node.others;
        }
    }
}

impl Context {
    /// Hands the context's pool for `device` and `kind` to `then`; `None` when the pools went with the context's
    /// last owner, and only allocations have it any more.
    pub(crate) fn with_pool<T>(
        &self,
        device: &Device,
        kind: UsmKind,
        then: impl FnOnce(&Pool<LevelZero>) -> T,
    ) -> Option<T> {
        self.with_attachment(|pools: &DefaultPools, unattached| {
            then(pools.get(unattached, device, kind))
        })
    }

    /// The pool that ordinary allocations of `kind` for `device` come from.
    #[must_use]
    pub fn pool(&self, device: &Device, kind: UsmKind) -> Option<Pool<LevelZero>> {
        self.with_pool(device, kind, Pool::clone)
    }
}
