//! Layouts: shapes, strides and extents.

use super::*;

#[test]
fn impossible_shapes_are_refused() {
    assert_eq!(
        Layout::new(&[2, -3], None, 0, 1),
        Err(Error::NegativeDimension {
            index: 1,
            value: -3
        })
    );
    assert_eq!(
        Layout::new(&[1; 65], None, 0, 1),
        Err(Error::TooManyDimensions(65))
    );
    assert_eq!(Layout::new(&[1; 64], None, 0, 1).unwrap().elements(), 1);
    let refused = |shape: &[i64], itemsize| {
        matches!(
            Layout::new(shape, None, 0, itemsize),
            Err(Error::ShapeOverflow { .. })
        )
    };
    // Products that wrap around to 0, 1 and a negative number in 64 bits.
    assert!(refused(&[1 << 32, 1 << 32], 1));
    assert!(refused(&[274_177, 67_280_421_310_721], 1));
    assert!(refused(&[1 << 32, 1 << 31], 1));
    assert!(refused(&[1 << 62], 2));
    assert!(refused(&[1 << 62, 2, 0], 1));
    assert!(refused(&[], usize::MAX));
    assert!(!refused(&[i64::MAX], 1));
}

#[test]
fn impossible_strides_are_refused() {
    assert_eq!(
        Layout::new(&[2, 3], Some(&[1]), 0, 1),
        Err(Error::StridesLength {
            strides: 1,
            shape: 2
        })
    );
    let refused = |shape: &[i64], strides: &[i64], offset, itemsize| {
        matches!(
            Layout::new(shape, Some(strides), offset, itemsize),
            Err(Error::ExtentOverflow { .. })
        )
    };
    assert!(refused(&[3], &[i64::MAX], 0, 1));
    assert!(refused(&[2, 2], &[i64::MAX, 1], 0, 1));
    assert!(refused(&[2], &[i64::MIN], -1, 1));
    assert!(refused(
        &[2, 2],
        &[i64::MAX / 2 + 1, i64::MIN / 2 - 1],
        0,
        1
    ));
    assert!(refused(&[], &[], i64::MAX, 1));
    assert!(refused(&[0], &[1], i64::MAX, 8));
    assert!(!refused(&[0], &[1], i64::MAX, 1));
    // Also a stride that is never applied.
    assert!(refused(&[1], &[1 << 62], 0, 8));
    assert!(!refused(&[1], &[1 << 62], 0, 1));
}

#[test]
fn contiguity_is_defined_as_in_numpy() {
    let both = |shape: &[i64], strides: Option<&[i64]>| {
        let layout = Layout::new(shape, strides, 0, 8).unwrap();
        (layout.is_c_contiguous(), layout.is_f_contiguous())
    };
    assert_eq!(both(&[], None), (true, true));
    assert_eq!(both(&[5], None), (true, true));
    assert_eq!(both(&[5], Some(&[2])), (false, false));
    assert_eq!(both(&[5], Some(&[-1])), (false, false));
    assert_eq!(both(&[2, 3], None), (true, false));
    assert_eq!(both(&[2, 3], Some(&[1, 2])), (false, true));
    assert_eq!(both(&[2, 1], Some(&[1, 77])), (true, true));
    assert_eq!(both(&[1, 1], Some(&[-9, 77])), (true, true));
    assert_eq!(both(&[2, 0, 3], Some(&[5, 5, 5])), (true, true));
    assert_eq!(both(&[2, 3], Some(&[0, 0])), (false, false));
}

#[test]
fn elements_that_may_overlap_are_not_distinct() {
    let distinct = |shape: &[i64], strides: &[i64]| {
        let layout = Layout::new(shape, Some(strides), 0, 4);
        layout.unwrap().is_distinct()
    };
    assert!(distinct(&[4, 3, 1], &[-3, 1, 0]));
    assert!(distinct(&[3, 4], &[1, 3]));
    assert!(!distinct(&[2, 2, 2], &[5, 1, 1]));
    assert!(!distinct(&[3, 3], &[2, 1]));
    assert!(!distinct(&[3, 2], &[1, 0]));
}

#[test]
fn the_extent_must_be_within_the_allocation() {
    let array = read(&fields(&[4], Some(&[2]), 1));
    let at = |base, size| array.layout.check_within(array.pointer, base..base + size);
    assert_eq!(array.layout.extent(), 4..32);
    assert_eq!(at(0x10_0000, 32), Ok(()));
    assert_eq!(at(0x10_0004, 28), Ok(()));
    assert_eq!(at(0, usize::MAX), Ok(()));
    assert!(at(0x10_0005, 100).is_err());
    let message = at(0x10_0000, 31).unwrap_err().to_string();
    for number in ["4..32", "0x100000", "31 bytes", "0..31"] {
        assert!(message.contains(number), "{number} is not in: {message}");
    }
    let empty = read(&fields(&[0], None, 1 << 40));
    assert_eq!(empty.layout.check_within(empty.pointer, 7..7), Ok(()));
}
