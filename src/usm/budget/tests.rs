#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn all_memory_counts_against_the_limit_and_device_memory_against_the_device() {
    let (device, other) = (600, 300);
    let mut budget = Budget {
        device,
        other,
        ..Budget::default()
    };
    let own = Some(Own {
        size: 1000,
        free: None,
    });
    assert!(budget.check(u64::MAX, None).is_ok());
    assert!(budget.check(400, own).is_ok());
    let error = budget.check(401, own).unwrap_err();
    assert!(error.is_out_of_memory());
    budget.limit = Some(1000);
    assert!(budget.check(100, own).is_ok());
    let error = budget.check(101, own).unwrap_err().to_string();
    assert!(error.contains("101 bytes more"), "{error}");
    assert!(error.contains("1000 bytes, of which this process holds 900"));
    // A limit below what is held.
    budget.limit = Some(1);
    assert!(budget.check(1, None).is_err());
}

#[test]
fn memory_of_other_processes_counts_where_the_driver_tells_it() {
    const MIB: u64 = 1 << 20;
    let own = |free| {
        Some(Own {
            size: 1000 * MIB,
            free: Some(free),
        })
    };
    let mut budget = Budget::default();
    assert!(budget.check(268 * MIB, own(300 * MIB)).is_ok());
    for more in [269, 300, 301] {
        let error = budget.check(more * MIB, own(300 * MIB)).unwrap_err();
        assert!(error.is_out_of_memory());
    }
    assert!(budget.check(1, own(MIB)).is_err());
    // What was freed may be in the driver's cache.
    budget.returned = 500 * MIB;
    assert!(budget.check(300 * MIB, own(300 * MIB)).is_err());
    assert!(budget.check(380 * MIB, own(300 * MIB)).is_ok());
    assert!(budget.check(381 * MIB, own(300 * MIB)).is_err());
    budget.returned = 50 * MIB;
    assert!(budget.check(350 * MIB, own(300 * MIB)).is_ok());
    assert!(budget.check(351 * MIB, own(300 * MIB)).is_err());
}
