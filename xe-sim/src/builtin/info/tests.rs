#![allow(clippy::unwrap_used)]

use super::*;

const TABLE: &str = "
version:         '1.73'
kernels:
  - name:            Other
    execution_env:
      simd_size:       32
  - name:            Rect
    payload_arguments:
      - arg_type:        enqueued_local_size
        offset:          28
        size:            12
      - arg_type:        arg_bypointer
        offset:          40
        size:            8
        arg_index:       0
        addrmode:        stateless
      - arg_type:        arg_byvalue
        offset:          48
        size:            4
        arg_index:       2
      - arg_type:        arg_byvalue
        offset:          52
        size:            4
        source_offset:   4
        arg_index:       2
";

#[test]
fn arguments_by_index() {
    let info = Info::of("Rect", TABLE).unwrap();
    assert_eq!(
        info.argument(0),
        Some(Slot {
            offset: 40,
            size: 8
        })
    );
    assert_eq!(
        info.argument(2),
        Some(Slot {
            offset: 48,
            size: 8
        })
    );
    assert_eq!(info.argument(1), None);
    assert_eq!(
        info.local_size,
        Some(Slot {
            offset: 28,
            size: 12
        })
    );
    assert!(Info::of("None", TABLE).is_err());
}
