"""Dask stores, measures and sends zeusm's memory objects and arrays.

The entry point `dask.sizeof` registers the types in every process that imports Dask; neither Dask nor zeusm is imported for
that. The rest is for programs: `SpillBuffer` is the `data=` of a worker, `IPC` a worker plugin.
"""

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zeusm_dask._ipc import IPC, transfers
    from zeusm_dask._spill import SpillBuffer

__all__ = ["IPC", "SpillBuffer", "register", "transfers"]

#: The modules of the public names, which import zeusm and distributed.
_MODULES = {"IPC": "_ipc", "transfers": "_ipc", "SpillBuffer": "_spill"}
_PROTOCOL = "distributed.protocol"


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def register(sizeof: Any) -> None:
    """Register the types with Dask, which calls this with its `sizeof`, and with distributed when it is imported."""

    @sizeof.register_lazy("zeusm")  # type: ignore[untyped-decorator]
    def sizes() -> None:
        from zeusm import UsmArray
        from zeusm.memory import _Memory

        for kind in (UsmArray, _Memory):
            sizeof.register(kind)(lambda value: object.__sizeof__(value) + value.nbytes)

    if _PROTOCOL in sys.modules:
        _register_serialization()
    else:
        sys.meta_path.insert(0, _AfterImport(_PROTOCOL, _register_serialization))


def _register_serialization() -> None:
    from distributed.protocol import dask_deserialize, dask_serialize

    @dask_serialize.register_lazy("zeusm")  # type: ignore[untyped-decorator]
    @dask_deserialize.register_lazy("zeusm")  # type: ignore[untyped-decorator]
    def serialization() -> None:
        from zeusm import UsmArray
        from zeusm.memory import _Memory

        from zeusm_dask._serialize import deserialize, serialize

        for kind in (UsmArray, _Memory):
            dask_serialize.register(kind)(serialize)
            dask_deserialize.register(kind)(deserialize)


class _AfterImport:
    """An import hook that calls a function once a module is imported: distributed has no entry point for serializers."""

    def __init__(self, module: str, then: Callable[[], None]) -> None:
        self._module = module
        self._then = then

    def find_spec(self, name: str, path: Any = None, _target: object = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            execute(module)
            self._then()

        spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec
