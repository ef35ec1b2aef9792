//! Random layouts compared with a model that visits every element.

use proptest::prelude::*;

use super::*;

/// Every byte that the elements touch, by visiting each element.
fn touched(shape: &[i64], strides: &[i64], offset: i64, itemsize: i64) -> Vec<i64> {
    let mut elements = vec![offset];
    for (&size, &stride) in shape.iter().zip(strides) {
        elements = elements
            .iter()
            .flat_map(|&at| (0..size).map(move |index| at + index * stride))
            .collect();
    }
    let bytes = |&at: &i64| (0..itemsize).map(move |byte| at * itemsize + byte);
    elements.iter().flat_map(bytes).collect()
}

/// Row-major strides by their definition: the product of the dimensions to the right.
fn model_strides(shape: &[i64]) -> Vec<i64> {
    (0..shape.len())
        .map(|axis| shape[axis + 1..].iter().product())
        .collect()
}

fn small_shape() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0..5i64, 0..5)
}

/// A small shape with strides of the same length.
pub(crate) fn strided() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    small_shape().prop_flat_map(|shape| {
        let ndim = shape.len();
        (Just(shape), prop::collection::vec(-30..30i64, ndim))
    })
}

/// Integers, many of them extreme.
fn any_integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -5..5i64,
        Just(i64::MAX),
        Just(i64::MIN),
        (0..63u32).prop_map(|bit| 1 << bit),
        (0..63u32).prop_map(|bit| -(1 << bit)),
    ]
}

fn assert_is_touched(layout: &Layout, model: &[i64], byte_offset: i64) {
    let extent = layout.extent();
    match (model.iter().min(), model.iter().max()) {
        (Some(&low), Some(&high)) => assert_eq!(extent, low as isize..high as isize + 1),
        _ => assert_eq!(extent, byte_offset as isize..byte_offset as isize),
    }
    assert_eq!(layout.nbytes(), model.len());
}

proptest! {
    #[test]
    fn the_extent_covers_the_elements(
        (shape, strides) in strided(), offset in -50..50i64, itemsize in 1..9usize,
    ) {
        let layout = Layout::new(&shape, Some(&strides), offset, itemsize).unwrap();
        let model = touched(&shape, &strides, offset, itemsize as i64);
        assert_is_touched(&layout, &model, offset * itemsize as i64);
    }

    #[test]
    fn the_row_major_extent_covers_the_elements(
        shape in small_shape(), offset in -50..50i64, itemsize in 1..9usize,
    ) {
        let layout = Layout::new(&shape, None, offset, itemsize).unwrap();
        let model = touched(&shape, &model_strides(&shape), offset, itemsize as i64);
        assert_is_touched(&layout, &model, offset * itemsize as i64);
        prop_assert!(layout.is_c_contiguous());
    }

    #[test]
    fn contiguous_elements_follow_each_other((shape, strides) in strided()) {
        let layout = Layout::new(&shape, Some(&strides), 0, 1).unwrap();
        let visited = touched(&shape, &strides, 0, 1);
        prop_assert_eq!(layout.is_c_contiguous(), visited.iter().zip(0..).all(|(&at, index)| at == index));
        let reversed = |values: &[i64]| values.iter().rev().copied().collect::<Vec<_>>();
        let visited = touched(&reversed(&shape), &reversed(&strides), 0, 1);
        prop_assert_eq!(layout.is_f_contiguous(), visited.iter().zip(0..).all(|(&at, index)| at == index));
    }

    #[test]
    fn distinct_elements_do_not_overlap((shape, strides) in strided()) {
        let layout = Layout::new(&shape, Some(&strides), 0, 1).unwrap();
        let visited = touched(&shape, &strides, 0, 1);
        let different = visited.iter().collect::<std::collections::BTreeSet<_>>().len();
        if layout.is_distinct() {
            prop_assert_eq!(different, visited.len());
        }
    }

    #[test]
    fn an_array_is_inside_when_every_byte_is(
        (shape, strides) in strided(), offset in -50..50i64, base in 0..3000usize, size in 0..3000usize,
    ) {
        let pointer = 1500;
        let layout = Layout::new(&shape, Some(&strides), offset, 2).unwrap();
        let inside = touched(&shape, &strides, offset, 2)
            .iter()
            .map(|at| pointer + at)
            .all(|at| (base as i64..(base + size) as i64).contains(&at));
        let checked = layout.check_within(pointer as usize, base..base + size);
        prop_assert_eq!(checked.is_ok(), inside);
    }

    #[test]
    fn no_integers_panic(
        shape in prop::collection::vec(any_integer(), 0..6),
        strides in prop::option::of(prop::collection::vec(any_integer(), 0..6)),
        offset in any_integer(),
        pointer in any::<u64>(),
        base in any::<usize>(),
        size in any::<usize>(),
    ) {
        let fields = Fields { pointer: Some(pointer), ..fields(&shape, strides.as_deref(), offset) };
        match Interface::read(&fields) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(array) => {
                if let Err(error) = array.layout.check_within(array.pointer, base..base.saturating_add(size)) {
                    prop_assert!(!error.to_string().is_empty());
                }
                let layout = &array.layout;
                prop_assert_eq!(layout.byte_strides().len(), layout.ndim());
                prop_assert!(layout.extent().start <= layout.extent().end);
                prop_assert!(layout.elements() == 0 || layout.extent().contains(&layout.byte_offset()));
                prop_assert!(!layout.is_c_contiguous() || layout.nbytes() == array.layout.extent().len());
                prop_assert!(!layout.is_f_contiguous() || layout.nbytes() == array.layout.extent().len());
                prop_assert!(array.start() <= usize::MAX - array.layout.extent().len());
            }
        }
    }

    #[test]
    fn a_parsed_typestr_survives_formatting(typestr in ".{0,6}|[<>|=]?[biufcVO][0-9]{0,3}") {
        if let Ok(item) = typestr.parse::<ItemType>() {
            prop_assert_eq!(item.to_string().parse::<ItemType>(), Ok(item));
        }
    }
}
