use super::{options, spelled, with_opencl_2};

#[test]
fn the_standard_is_chosen_unless_the_program_chooses_it() {
    assert_eq!(with_opencl_2(""), "-cl-std=CL2.0");
    assert_eq!(with_opencl_2("-g"), "-g -cl-std=CL2.0");
    assert_eq!(with_opencl_2("-cl-std=CL3.0"), "-cl-std=CL3.0");
}

#[test]
fn levels_are_spelled_as_intel_s_compiler_spells_them() {
    assert_eq!(spelled("-ze-opt-level=2  -g"), "-ze-opt-level=O2 -g");
    assert_eq!(spelled("-ze-opt-level=O1"), "-ze-opt-level=O1");
}

#[test]
fn level_zero_s_flags_become_opencl_s_or_nothing() {
    assert_eq!(options(""), "");
    assert_eq!(options("-ze-opt-disable  -g"), "-cl-opt-disable -g");
    assert_eq!(
        options("-ze-opt-level=2 -cl-fast-relaxed-math"),
        "-cl-fast-relaxed-math"
    );
    assert_eq!(options("-ze-opt-greater-than-4GB-buffer-required"), "");
    assert_eq!(
        options("-igc_opts 'PartitionUnit=1,SubroutineThreshold=50000' -g"),
        "-g"
    );
    assert_eq!(options("-igc_opts 'a b c' -g"), "-g");
    assert_eq!(options("-igc_opts ' a' -g"), "-g", "a quote of its own");
    assert_eq!(options("-igc_opts a -g"), "-g", "no quotes");
    assert_eq!(options("-g -igc_opts"), "-g");
    assert_eq!(
        options("-cl-take-global-address -g -library-compilation"),
        "-g"
    );
    assert_eq!(
        options("-ze-fp32-correctly-rounded-divide-sqrt"),
        "-cl-fp32-correctly-rounded-divide-sqrt"
    );
}
