//! Dictionaries: missing and inconsistent fields.

use super::*;

#[test]
fn missing_fields_are_named() {
    let whole = fields(&[2], None, 0);
    for (field, without) in [
        (
            "version",
            Fields {
                version: None,
                ..whole.clone()
            },
        ),
        (
            "data",
            Fields {
                pointer: None,
                ..whole.clone()
            },
        ),
        (
            "typestr",
            Fields {
                typestr: None,
                ..whole.clone()
            },
        ),
        (
            "shape",
            Fields {
                shape: None,
                ..whole.clone()
            },
        ),
    ] {
        assert_eq!(Interface::read(&without), Err(Error::Missing(field)));
        assert!(refusal(&without).contains(field));
    }
    let least = Fields {
        flag: None,
        offset: None,
        ..whole
    };
    assert_eq!(read(&least).layout.element_offset().unwrap(), 0);
}

#[test]
fn only_version_1_is_supported() {
    for version in [0, 2, -1, i64::MIN, i64::MAX] {
        let fields = Fields {
            version: Some(version),
            ..fields(&[2], None, 0)
        };
        assert_eq!(Interface::read(&fields), Err(Error::Version(version)));
        assert!(refusal(&fields).contains(&version.to_string()));
    }
}

#[test]
fn a_null_pointer_is_valid_without_elements_only() {
    let null = |shape| Fields {
        pointer: Some(0),
        ..fields(shape, None, 0)
    };
    assert!(read(&null(&[4, 0])).layout.extent().is_empty());
    assert_eq!(Interface::read(&null(&[])), Err(Error::NullPointer(vec![])));
    assert_eq!(
        Interface::read(&null(&[3])),
        Err(Error::NullPointer(vec![3]))
    );
}

#[test]
fn elements_outside_of_the_address_space_are_refused() {
    let below = Fields {
        pointer: Some(4),
        ..fields(&[3], Some(&[-1]), 0)
    };
    assert!(refusal(&below).contains("0x4"));
    assert!(refusal(&below).contains("-8..4"));
    let above = Fields {
        pointer: Some(u64::MAX - 6),
        ..fields(&[2], None, 0)
    };
    assert!(matches!(
        Interface::read(&above),
        Err(Error::OutsideAddressSpace { .. })
    ));
    let last = Fields {
        pointer: Some(u64::MAX - 8),
        ..fields(&[2], None, 0)
    };
    assert_eq!(read(&last).layout.extent().len(), 8);
}

#[test]
fn a_view_starts_at_the_lowest_element() {
    let array = read(&fields(&[3, 2], Some(&[-2, 1]), 10));
    assert_eq!(array.start(), 0x10_0000 + (10 - 4) * 4);
    assert_eq!(array.layout.extent().len(), 6 * 4);
    assert_eq!(read(&fields(&[0], None, 3)).start(), 0x10_0000);
}

#[test]
fn descr_must_have_the_size_in_typestr() {
    let pair = || {
        let field = |name: &str, item: &str| RecordField {
            name: name.to_owned(),
            element: ElementType::Item(item.parse().unwrap()),
            shape: vec![],
        };
        Some(Record::new(vec![field("a", "<i4"), field("b", "<f8")]).unwrap())
    };
    let with = |typestr: &str| Fields {
        typestr: Some(typestr.to_owned()),
        descr: pair(),
        ..fields(&[2], None, 0)
    };
    assert_eq!(
        read(&with("|V12")).element.format().unwrap(),
        "T{<i:a:<d:b:}"
    );
    let wrong = Error::DescrSize {
        described: 12,
        itemsize: 16,
    };
    assert_eq!(Interface::read(&with("|V16")), Err(wrong));
    assert_eq!(read(&with("<f4")).element.format().unwrap(), "f");
    let padding = RecordField {
        name: String::new(),
        element: ElementType::Item("|V4".parse().unwrap()),
        shape: vec![],
    };
    let unnamed = Fields {
        descr: Some(Record::new(vec![padding]).unwrap()),
        ..with("|V4")
    };
    assert!(matches!(read(&unnamed).element, ElementType::Item(_)));
}
