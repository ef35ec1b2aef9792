//! Views compared with a model: the list of the elements' addresses.

use proptest::prelude::*;

use super::*;

/// The offsets of the elements in bytes, in row-major order of their indices.
pub(crate) fn addresses(layout: &Layout) -> Vec<isize> {
    let mut found = vec![layout.byte_offset()];
    for (&size, stride) in layout.shape().iter().zip(layout.byte_strides()) {
        found = found
            .iter()
            .flat_map(|at| (0..size.cast_signed()).map(move |index| at + index * stride))
            .collect();
    }
    found
}

fn layout() -> impl Strategy<Value = Layout> {
    let shape = prop::collection::vec(0..5i64, 0..5);
    let with_strides = shape.prop_flat_map(|shape| {
        let ndim = shape.len();
        let strides = prop::option::of(prop::collection::vec(-30..30i64, ndim));
        (Just(shape), strides, -50..50i64, 1..9usize)
    });
    with_strides.prop_map(|(shape, strides, offset, itemsize)| {
        Layout::new(&shape, strides.as_deref(), offset, itemsize).unwrap()
    })
}

/// All positions of each dimension.
fn everything(layout: &Layout) -> Vec<Index> {
    let whole = |&length: &usize| Index::Slice {
        start: 0,
        step: 1,
        length,
    };
    layout.shape().iter().map(whole).collect()
}

#[test]
fn indices_out_of_bounds_are_refused() {
    let layout = Layout::new(&[2, 3], None, 0, 4).unwrap();
    for index in [3, -4, isize::MAX, isize::MIN] {
        let refused = layout.index(&[Index::At(0), Index::At(index)]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("index {index} is out of bounds for axis 1 of size 3")
        );
    }
    assert_eq!(
        layout.index(&[Index::At(0)]).unwrap_err().to_string(),
        "1 indices for an array of 2 dimensions"
    );
}

#[test]
fn slices_out_of_bounds_are_refused() {
    let layout = Layout::new(&[7], None, 0, 16).unwrap();
    let index = |start, step, length| {
        let slice = Index::Slice {
            start,
            step,
            length,
        };
        layout.index(&[slice]).map_err(|error| error.to_string())
    };
    for (start, step, length, at) in [
        (0, 1, 8, 7),
        (7, 1, 1, 7),
        (-1, 1, 1, -1),
        (0, -1, 2, -1),
        (6, 3, 2, 9),
        (1, isize::MAX, 3, isize::MAX),
        (1, isize::MIN, 3, isize::MIN + 1),
        (1, 1, usize::MAX, isize::MAX),
    ] {
        let told = format!("index {at} is out of bounds for axis 0 of size 7");
        assert_eq!(index(start, step, length), Err(told));
    }
    for (start, step, length) in [(6, -6, 2), (0, 6, 2), (6, 9, 1), (9, 1, 0), (-9, -1, 0)] {
        let view = index(start, step, length).unwrap();
        assert_eq!(view.shape(), [length]);
        assert!(layout.extent().contains(&view.extent().start));
    }
}

#[test]
fn axes_must_be_a_permutation() {
    let layout = Layout::new(&[2, 3], None, 0, 4).unwrap();
    for axes in [&[0][..], &[0, 0], &[0, 2], &[0, -3], &[0, 1, 1], &[1, -1]] {
        assert!(layout.transposed(axes).is_err(), "{axes:?}");
    }
    assert_eq!(layout.transposed(&[-1, 0]).unwrap().shape(), [3, 2]);
}

#[test]
fn a_shape_with_another_number_of_elements_is_refused() {
    let layout = Layout::new(&[2, 3], None, 0, 4).unwrap();
    for wanted in [
        &[5][..],
        &[-1, 4],
        &[-1, -1],
        &[-2, -3],
        &[0],
        &[-1, 0],
        &[],
    ] {
        assert!(
            layout.reshaped(wanted, Order::RowMajor).is_err(),
            "{wanted:?}"
        );
    }
    let filled = layout.reshaped(&[3, -1, 1], Order::RowMajor);
    assert_eq!(filled.unwrap().unwrap().shape(), [3, 2, 1]);
}

#[test]
fn flattening_a_transposed_matrix_needs_a_copy() {
    let layout = Layout::new(&[2, 3], None, 0, 4).unwrap();
    let transposed = layout.reversed().unwrap();
    assert_eq!(transposed.reshaped(&[6], Order::RowMajor), Ok(None));
    let flat = transposed.reshaped(&[6], Order::ColumnMajor);
    assert_eq!(flat.unwrap().unwrap().element_strides().unwrap(), [1]);
}

#[test]
fn a_matrix_with_gaps_is_one_region() {
    let layout = Layout::new(&[3, 4, 5], Some(&[200, 20, 2]), 7, 4).unwrap();
    let regions: Vec<Region> = layout.regions().collect();
    assert_eq!(layout.regions().len(), regions.len());
    assert_eq!(regions.len(), 3); // One for each slice, as the rows are single elements.
    let layout = Layout::new(&[3, 4, 5], Some(&[200, 20, 1]), 7, 4).unwrap();
    assert_eq!(
        layout.regions().collect::<Vec<_>>(),
        [Region {
            start: 28,
            packed_start: 0,
            width: 20,
            rows: 4,
            pitch: 80,
            slices: 3,
            slice_pitch: 800,
        }]
    );
}

#[test]
fn slices_need_a_pitch_that_is_a_multiple_of_the_rows_pitch() {
    // Rows with a pitch of 8 bytes: three of them need a slice pitch of at least 24 bytes, and a multiple of 8.
    for (slice_stride, count) in [(16, 2), (24, 1), (25, 2), (32, 1)] {
        let layout = Layout::new(&[2, 3, 5], Some(&[slice_stride, 8, 1]), 0, 1).unwrap();
        assert_eq!(layout.regions().len(), count, "{slice_stride} bytes");
    }
}

/// Level Zero's regions have sizes and pitches of 32 bits.
#[test]
fn dimensions_beyond_32_bits_are_in_no_region() {
    const LARGE: i64 = 1 << 32;
    for (shape, strides, count) in [
        (&[2, 5][..], &[LARGE, 1][..], 2),
        (&[3, 2, 5], &[LARGE, 8, 1], 3),
        (&[LARGE, 5], &[8, 1], LARGE as usize),
        (&[LARGE, 2, 5], &[24, 8, 1], LARGE as usize),
    ] {
        let layout = Layout::new(shape, Some(strides), 0, 1).unwrap();
        assert_eq!(layout.regions().len(), count, "{shape:?} {strides:?}");
    }
}

#[test]
fn the_stride_of_a_dimension_of_one_element_is_irrelevant() {
    let layout = Layout::new(&[2, 1, 3], Some(&[3, 77, 1]), 0, 1).unwrap();
    let flat = layout.reshaped(&[6], Order::RowMajor).unwrap().unwrap();
    assert_eq!(flat.element_strides().unwrap(), [1]);
}

#[test]
fn repeated_elements_are_packed_forwards() {
    let layout = Layout::new(&[2, 3], Some(&[-4, 0]), 4, 1).unwrap();
    let (_, packed) = layout.packed().unwrap();
    assert_eq!(
        (
            packed.element_offset().unwrap(),
            packed.element_strides().unwrap()
        ),
        (3, vec![-3, 1])
    );
}

#[test]
fn a_row_too_wide_for_a_region_copy_is_a_region_of_its_own() {
    let wide = i64::from(u32::MAX) + 1;
    let layout = Layout::new(&[2, wide], Some(&[2 * wide, 1]), 0, 1).unwrap();
    let regions: Vec<Region> = layout.regions().collect();
    assert_eq!(regions.len(), 2);
    assert!(
        regions
            .iter()
            .all(|region| (region.rows, region.slices) == (1, 1))
    );
}

proptest! {
    #[test]
    fn regions_hold_the_elements_in_order(layout in layout()) {
        let mut found = Vec::new();
        for region in layout.regions() {
            prop_assert_eq!(region.packed_start, found.len());
            for slice in 0..region.slices.cast_signed() {
                for row in 0..region.rows.cast_signed() {
                    let start = region.start + slice * region.slice_pitch.cast_signed() + row * region.pitch.cast_signed();
                    found.extend(start..start + region.width.cast_signed());
                }
            }
            prop_assert!(region.rows == 1 || region.pitch >= region.width);
            prop_assert!(region.slices == 1 || region.slice_pitch >= region.pitch * region.rows);
        }
        let bytes = |at: isize| at..at + layout.itemsize().cast_signed();
        prop_assert_eq!(found, addresses(&layout).into_iter().flat_map(bytes).collect::<Vec<_>>());
    }

    #[test]
    fn packing_keeps_every_element(layout in layout()) {
        let (in_memory, packed) = layout.packed().unwrap();
        let mut sorted = addresses(&layout);
        let packed_addresses = addresses(&packed);
        // The element at a packed address is that with the same number in `in_memory`.
        let elements = addresses(&in_memory);
        let itemsize = layout.itemsize().cast_signed();
        for (&at, &packed_at) in sorted.iter().zip(&packed_addresses) {
            prop_assert_eq!(elements[(packed_at / itemsize).unsigned_abs()], at);
        }
        sorted.sort_unstable();
        if layout.elements() != 0 {
            prop_assert_eq!(packed.extent(), 0..layout.nbytes().cast_signed());
        }
        prop_assert_eq!(packed.shape(), layout.shape());
    }

    #[test]
    fn a_span_has_the_bytes_of_the_extent(layout in layout()) {
        let (row, within) = layout.spanned().unwrap();
        prop_assert_eq!(row.extent(), layout.extent());
        prop_assert!(row.is_c_contiguous() && row.itemsize() == 1);
        let start = row.extent().start;
        let there: Vec<isize> = addresses(&within).iter().map(|at| at + start).collect();
        prop_assert_eq!(there, addresses(&layout));
        if layout.elements() != 0 {
            prop_assert_eq!(within.extent(), 0..layout.extent().len().cast_signed());
        }
    }

    #[test]
    fn full_slices_select_all_elements(layout in layout()) {
        let whole = layout.index(&everything(&layout)).unwrap();
        prop_assert_eq!(addresses(&whole), addresses(&layout));
    }

    #[test]
    fn slices_select_the_elements_at_each_step(layout in layout(), step in 1..4isize, backwards: bool) {
        let Some(&size) = layout.shape().first() else {
            return Ok(());
        };
        let mut entries = everything(&layout);
        let length = size.div_ceil(step.unsigned_abs());
        let start = if backwards { size.cast_signed() - 1 } else { 0 };
        let step = if backwards { -step } else { step };
        entries[0] = Index::Slice { start: start.max(0), step, length };
        let view = layout.index(&entries).unwrap();
        let rows: Vec<Vec<isize>> = (0..size.cast_signed())
            .map(|at| {
                entries[0] = Index::At(at);
                addresses(&layout.index(&entries).unwrap())
            })
            .collect();
        let wanted: Vec<isize> = (0..length.cast_signed())
            .flat_map(|at| rows[(start + at * step).unsigned_abs()].clone())
            .collect();
        prop_assert_eq!(addresses(&view), wanted);
    }

    #[test]
    fn reshaping_keeps_the_order(layout in layout(), parts in prop::collection::vec(1..5i64, 0..4)) {
        let product: i64 = parts.iter().product();
        let elements = layout.elements() as i64;
        let mut wanted = parts;
        wanted.push(elements / product);
        let reshaped = layout.reshaped(&wanted, Order::RowMajor);
        if elements % product != 0 {
            let is_refused = matches!(reshaped, Err(ViewError::Reshape { .. }));
            prop_assert!(is_refused);
        } else if let Some(view) = reshaped.unwrap() {
            prop_assert_eq!(view.shape().iter().map(|&size| size as i64).collect::<Vec<_>>(), wanted);
            prop_assert_eq!(addresses(&view), addresses(&layout));
        } else {
            prop_assert!(!layout.is_c_contiguous());
        }
    }

    #[test]
    fn a_merged_reshape_needs_no_copy(shape in prop::collection::vec(1..5i64, 1..5), step in 1..4i64) {
        let layout = Layout::new(&shape, None, 0, 1).unwrap();
        let strides: Vec<i64> = layout.element_strides().unwrap().iter().map(|&stride| stride as i64 * step).collect();
        let spread = Layout::new(&shape, Some(&strides), 3, 1).unwrap();
        let flat = spread.reshaped(&[-1], Order::RowMajor).unwrap().unwrap();
        prop_assert_eq!(addresses(&flat), addresses(&spread));
    }

    #[test]
    fn transposing_twice_is_the_identity(layout in layout()) {
        prop_assert_eq!(addresses(&layout.reversed().unwrap().reversed().unwrap()), addresses(&layout));
        let backwards: Vec<isize> = (0..layout.ndim().cast_signed()).rev().collect();
        prop_assert_eq!(
            addresses(&layout.transposed(&backwards).unwrap()),
            addresses(&layout.reversed().unwrap())
        );
    }
}
