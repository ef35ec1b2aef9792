//! Properties and methods whose docstrings end with examples that begin alike.

/// Methods of a class: for each its docstring, the last line of the example and its result, and the method. `$first` is the first
/// lines of all examples.
macro_rules! methods {
    (
        $class:ident, $first:literal;
        $(
            $(#[$about:meta])*
            $example:literal => $result:literal
            $(#[$of_method:meta])*
            fn $name:ident $(<$life:lifetime>)? ($($arguments:tt)*) $(-> $type:ty)? $body:block
        )*
    ) => {
        #[pyo3::pymethods]
        impl $class {
            $(
                $(#[$about])*
                #[doc = concat!("\nExamples\n--------\n", $first, "\n>>> ", $example, "\n", $result)]
                $(#[$of_method])*
                fn $name $(<$life>)? ($($arguments)*) $(-> $type)? $body
            )*
        }
    };
}
pub(crate) use methods;

/// The properties of a class, in the same form.
macro_rules! getters {
    (
        $class:ident, $first:literal;
        $(
            $(#[$about:meta])*
            $example:literal => $result:literal
            fn $name:ident $(<$life:lifetime>)? ($($arguments:tt)*) -> $type:ty $body:block
        )*
    ) => {
        $crate::getters::methods! {
            $class, $first;
            $(
                $(#[$about])*
                $example => $result
                #[getter]
                fn $name $(<$life>)? ($($arguments)*) -> $type $body
            )*
        }
    };
}
pub(crate) use getters;
