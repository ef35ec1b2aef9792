"""What notebooks show: `_repr_html_` of arrays, memory, pools, the runtime and histories."""

from html.parser import HTMLParser

import numpy as np
import pytest
import zeusm
import zeusm.memory as zm
from conftest import CLASSES
from zeusm._notebook import html

pytestmark = pytest.mark.once


class Table(HTMLParser):
    """The caption, the rows and the text below a table."""

    def __init__(self, text):
        super().__init__()
        self.found = {"caption": [], "th": [], "td": [], "pre": []}
        self.open = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, _attributes):
        if tag == "br":
            return self.handle_data("\n")
        self.open.append(tag)
        if tag in self.found:
            self.found[tag].append("")
        return None

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in self.found:
            self.found[self.open[-1]][-1] += data

    @property
    def cells(self):
        return dict(zip(self.found["th"], self.found["td"], strict=True))


def table_of(thing):
    return Table(thing._repr_html_())


def test_an_array(usm_type):
    elements = np.arange(6.0).reshape(2, 3)
    array = zeusm.asarray(elements, usm_type=usm_type)
    table = table_of(array)
    device = table.cells.pop("Device")
    assert f" on {device}:\n" in repr(array)
    assert table.cells == {
        "Shape": "(2, 3)",
        "dtype": "float64",
        "Kind": usm_type,
        "Size": "48 bytes",
        "Device": device,
    }
    assert table.found["pre"] == [np.array2string(elements, separator=", ")]


def test_what_is_not_shown_is_not_copied(monkeypatch):
    copied = []
    read = zeusm._host.read
    monkeypatch.setattr(
        zeusm._host, "read", lambda array, to: copied.append(array.size) or read(array, to)
    )
    array = zeusm.asarray(np.arange(1 << 20), usm_type="device")
    (text,) = table_of(array).found["pre"]
    assert text.endswith("..., 1048573, 1048574, 1048575]")
    assert sum(copied) == 7


def test_elements_that_cannot_be_shown():
    pool = zm.MemoryPool("device", suspendable=True)
    array = zeusm.asarray(pool.malloc(64))
    pool.suspend()
    (reason,) = table_of(array).found["pre"]
    assert "the memory's pool is suspended" in reason
    pool.resume()
    assert table_of(zeusm.empty(3, "float4_e2m1fn_x2")).found["pre"] == []


def test_memory(usm_type):
    memory = CLASSES[usm_type](1 << 20)
    table = table_of(memory)
    assert table.found["caption"] == ["zeusm memory"]
    assert table.cells["Kind"] == usm_type
    assert table.cells["Size"] == "1 MiB (1048576 bytes)"
    assert int(table.cells["Address"], 16) == memory._pointer
    memory.close()
    assert table_of(memory).found["caption"] == ["zeusm memory, closed"]


def test_a_pool():
    pool = zm.MemoryPool("shared", limit=1 << 20)
    memory = pool.malloc(4000)
    with pytest.raises(zm.USMAllocationError):
        pool.malloc(2 << 20)
    cells = table_of(pool).cells
    assert cells == {
        "Kind": "shared",
        "In use": "4 KiB (4096 bytes)",
        "Peak": "4 KiB (4096 bytes)",
        "Held": f"{pool.total_bytes() >> 10} KiB ({pool.total_bytes()} bytes)",
        "Limit": "1 MiB (1048576 bytes)",
        "Allocations": "1",
        "Failures": "1",
        "Device": cells.get("Device"),
    }
    del memory
    assert table_of(pool).cells["In use"] == "0 bytes"
    assert table_of(zm.MemoryPool("host")).cells["Limit"] == "none"


def test_the_devices():
    runtime = zeusm.runtime()
    kind, devices, reason = table_of(runtime).found["td"]
    assert (kind, reason) == (runtime.kind, runtime.reason)
    assert devices == "\n".join(runtime.device_names)


def test_a_history():
    with zm.record_history() as history:
        zm.MemoryUSMDevice(64 << 20).close()
    for shown in (history, history.snapshot(), zm.snapshot()):
        assert {"Peak in use", "In use at the end", "Failed allocations"} <= {
            *table_of(shown).cells
        }
    events = history.snapshot()["events"]["time"]
    assert table_of(history).cells["Events"] == str(len(events))


def test_text_is_not_html():
    table = Table(html("<b>", [("<i>", "<script>&")], "<u>"))
    assert table.found["caption"] == ["<b>"]
    assert table.cells == {"<i>": "<script>&"}
    assert table.found["pre"] == ["<u>"]
