//! Types of items.

use super::*;

#[test]
fn a_typestr_has_a_format_and_a_dlpack_code() {
    // The given string, NumPy's form, the buffer format, DLPack's code.
    for (given, canonical, format, code) in [
        ("|b1", "|b1", "?", Some(6)),
        ("<b1", "|b1", "?", Some(6)),
        ("i1", "|i1", "b", Some(0)),
        ("|u1", "|u1", "B", Some(1)),
        ("<i2", "<i2", "h", Some(0)),
        ("=u2", "<u2", "H", Some(1)),
        ("<i4", "<i4", "i", Some(0)),
        ("|u4", "<u4", "I", Some(1)),
        ("<f2", "<f2", "e", Some(2)),
        ("f4", "<f4", "f", Some(2)),
        ("<f8", "<f8", "d", Some(2)),
        ("<c8", "<c8", "Zf", Some(5)),
        ("<c16", "<c16", "Zd", Some(5)),
        (">i8", ">i8", ">q", None),
        (">c16", ">c16", ">Zd", None),
        ("<V3", "|V3", "3x", None),
    ] {
        let item: ItemType = given.parse().unwrap();
        assert_eq!(item.to_string(), canonical);
        assert_eq!(item.format().unwrap(), format, "{given}");
        assert_eq!(item.dlpack().map(|dlpack| dlpack.code), code, "{given}");
        if let Some(dlpack) = item.dlpack() {
            assert_eq!(
                (usize::from(dlpack.bits), dlpack.lanes),
                (item.size() * 8, 1)
            );
        }
    }
    assert_eq!("|u1".parse(), Ok(ItemType::BYTE));
}

#[test]
fn items_have_numpys_names() {
    for (name, typestr) in [
        ("bool", "|b1"),
        ("int8", "|i1"),
        ("uint64", "u8"),
        ("float16", "f2"),
        ("float128", "f16"),
        ("complex128", "c16"),
    ] {
        let item: ItemType = typestr.parse().unwrap();
        assert_eq!(ItemType::named(name), Some(item));
        assert_eq!(item.name(), Some(name));
        assert_eq!(
            item.is_standard(),
            item.size() <= 8 || item.kind() == Kind::Complex
        );
    }
    let foreign: ItemType = ">f4".parse().unwrap();
    assert_eq!(foreign.name(), Some("float32"));
    assert_ne!(ItemType::named("float32"), Some(foreign));
    for name in ["", "int", "int7", "float8", "complex33", "void8", "<f4"] {
        assert_eq!(ItemType::named(name), None, "{name}");
    }
    assert_eq!("V3".parse::<ItemType>().unwrap().name(), None);
}

#[test]
fn narrow_numbers_have_names_and_dlpack_codes_only() {
    for (name, size, code, bits) in [
        ("bfloat16", 2, 4, 16),
        ("complex32", 4, 5, 32),
        ("float8_e4m3fn", 1, 10, 8),
        ("float4_e2m1fn", 1, 17, 4),
        ("float4_e2m1fn_x2", 1, 17, 4),
        ("int4", 1, 0, 4),
        ("uint1", 1, 1, 1),
    ] {
        let item = ItemType::named(name).unwrap();
        assert_eq!((item.name(), item.size()), (Some(name), size));
        let dlpack = item.dlpack().unwrap();
        assert_eq!((dlpack.code, dlpack.bits), (code, bits));
        assert_eq!(dlpack.lanes, if name.ends_with("_x2") { 2 } else { 1 });
        assert_eq!(ItemType::of_dlpack(dlpack), Some(item));
        assert!(!item.is_standard() && item.format().is_err());
        assert_eq!(item.bits().unwrap().size(), size);
        assert_eq!(
            item.to_string().parse::<ItemType>().unwrap().kind(),
            Kind::Void
        );
    }
    let of_dlpack = |code, bits, lanes| ItemType::of_dlpack(DlpackType { code, bits, lanes });
    assert_eq!(of_dlpack(0, 32, 1), ItemType::named("int32"));
    for (code, bits, lanes) in [
        (2, 8, 1),
        (4, 32, 1),
        (0, 12, 1),
        (6, 16, 1),
        (255, 8, 1),
        (0, 32, 2),
        (17, 4, 3),
    ] {
        assert_eq!(of_dlpack(code, bits, lanes), None);
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn native_formats_are_as_in_numpy_on_linux() {
    for (typestr, format) in [("<i8", "l"), ("<u8", "L"), ("<f16", "g"), ("<c32", "Zg")] {
        assert_eq!(
            typestr.parse::<ItemType>().unwrap().format().unwrap(),
            format
        );
    }
    let foreign: ItemType = ">f16".parse().unwrap();
    assert_eq!(foreign.format(), Err(Error::NoFormat(">f16".to_owned())));
}

#[test]
fn malformed_typestrs_are_quoted() {
    for typestr in [
        "",
        "<",
        "|",
        "<<f4",
        "f",
        "<f",
        "<f+4",
        "<f-4",
        "<f 4",
        "<f4 ",
        "<f3",
        "<f0",
        "<b4",
        "<c4",
        "<i16",
        "<O8",
        "<S4",
        "<U4",
        "<M8",
        "<m8",
        "<t8",
        "<x4",
        "f\u{664}",
        "<f99999999999999999999",
        "|V0",
        "|V18446744073709551615",
        "float32",
        "\u{1f600}4",
        "<f4\0",
    ] {
        let error = typestr.parse::<ItemType>().unwrap_err();
        assert!(matches!(error, Error::Typestr { .. }), "{typestr:?}");
        assert!(error.to_string().contains(typestr));
    }
}
