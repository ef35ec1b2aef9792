use super::*;

#[test]
fn a_switch_takes_words() {
    let of = |word: &str| switch(|_| Some(OsString::from(word)), "ZEUSM_POOL");
    for on in ["1", "true", "Yes", " ON "] {
        assert_eq!(of(on), Ok(Some(true)));
    }
    for off in ["0", "FALSE", "no", "off"] {
        assert_eq!(of(off), Ok(Some(false)));
    }
    assert_eq!(of(""), Ok(None));
    assert_eq!(switch(|_| None, "ZEUSM_POOL"), Ok(None));
    let error = of("maybe").expect_err("no word").to_string();
    assert!(error.starts_with("ZEUSM_POOL=\"maybe\" is not"), "{error}");
}

#[test]
fn a_number_has_a_range() {
    let of = |text: &str| number(|_| Some(OsString::from(text)), "ZEUSM_CPU_TILES", 1..=16);
    assert_eq!(
        (of("1"), of("16"), of("")),
        (Ok(Some(1)), Ok(Some(16)), Ok(None))
    );
    for wrong in ["0", "17", "-1", "1.5", "x", "99999999999"] {
        let error = of(wrong).expect_err("no such number").to_string();
        assert!(error.ends_with("is not a number from 1 to 16"), "{error}");
    }
}

#[test]
fn misspelt_names_are_unknown() {
    for known in [
        "ZEUSM_CHECK",
        "ZEUSM_TEST_ANYTHING",
        "ZE_AFFINITY_MASK",
        "PATH",
    ] {
        assert!(!is_unknown(known), "{known}");
    }
    assert!(is_unknown("ZEUSM_CHEKC") && is_unknown("ZEUSM_CPU_DEVICE"));
}
