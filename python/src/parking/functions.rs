// Functions of the C API that may run Python code, as `build.rs` and `mod.rs` include them.
parked! {
    fn PyBuffer_Release(view: View);
    fn PyErr_NormalizeException(class: Place, value: Place, traceback: Place);
    fn PyErr_PrintEx(sets_last: c_int);
    fn PyErr_WriteUnraisable(context: Object);
    fn PyFloat_AsDouble(number: Object) -> f64;
    fn PyImport_Import(name: Object) -> Object;
    fn PyIter_Next(iterator: Object) -> Object;
    fn PyLong_AsLong(number: Object) -> c_long;
    fn PyMemoryView_FromObject(object: Object) -> Object;
    fn PyNumber_Add(one: Object, other: Object) -> Object;
    fn PyNumber_Index(number: Object) -> Object;
    fn PyNumber_Lshift(one: Object, other: Object) -> Object;
    fn PyNumber_Or(one: Object, other: Object) -> Object;
    fn PyOS_FSPath(path: Object) -> Object;
    fn PyObject_Call(function: Object, arguments: Object, keywords: Object) -> Object;
    // PyO3 calls it without arguments: the last one is null. It has a variable number.
    fn PyObject_CallMethodObjArgs(object: Object, name: Object, end: Object) -> Object;
    fn PyObject_CallNoArgs(function: Object) -> Object;
    fn PyObject_DelItem(object: Object, key: Object) -> c_int;
    fn PyObject_GetAttr(object: Object, name: Object) -> Object;
    fn PyObject_GetBuffer(object: Object, view: View, flags: c_int) -> c_int;
    fn PyObject_GetItem(object: Object, key: Object) -> Object;
    fn PyObject_GetIter(object: Object) -> Object;
    fn PyObject_IsInstance(object: Object, class: Object) -> c_int;
    fn PyObject_IsTrue(object: Object) -> c_int;
    fn PyObject_Repr(object: Object) -> Object;
    fn PyObject_RichCompare(one: Object, other: Object, comparison: c_int) -> Object;
    fn PyObject_SetAttr(object: Object, name: Object, value: Object) -> c_int;
    fn PyObject_SetItem(object: Object, key: Object, value: Object) -> c_int;
    fn PyObject_Size(object: Object) -> isize;
    fn PyObject_Str(object: Object) -> Object;
    fn PySlice_Unpack(slice: Object, start: Number, stop: Number, step: Number) -> c_int;
}
