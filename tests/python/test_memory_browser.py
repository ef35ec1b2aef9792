"""The pictures of `zeusm memory` in a headless Chromium: they are drawn, answer to pointer and keys, and ask for nothing."""

import itertools
import math
import os
from types import SimpleNamespace

import browser as chromium
import pytest
from histories import empty, simulate
from zeusm._pictures import flamegraph
from zeusm._pictures.file import parse
from zeusm._pictures.page import page
from zeusm._pictures.replay import replay

pytestmark = pytest.mark.once

READY = "window.zeusmReport !== undefined || !document.getElementById('trouble').hidden"
EVENTS = 3000
#: Used by `make test-browser`, where a missing browser is an error.
REQUIRED = os.environ.get("ZEUSM_TEST_BROWSER_REQUIRED") == "1"


@pytest.fixture(scope="module")
def browser():
    executable = chromium.find()
    if executable is None and not REQUIRED:
        pytest.skip(
            "no Chromium is installed, so no picture is looked at; `make test-browser` installs one"
        )
    opened = chromium.Browser(executable)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shown(browser, tmp_path_factory):
    """Opens the page of a history, and waits until it is drawn."""

    def show(tree):
        found = replay(parse(tree))
        path = tmp_path_factory.mktemp("page") / "page.html"
        path.write_text(page(found), encoding="utf-8")
        browser.load(path)
        browser.until(READY)
        browser.settle()
        return SimpleNamespace(browser=browser, path=path, replay=found)

    return show


@pytest.fixture
def report(shown):
    return shown(simulate(EVENTS, seed=5))


def box(browser, selector):
    """Where an element is: left, top, width, height."""
    return browser.evaluate(
        f"(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView(); const b = e.getBoundingClientRect();"
        " return [b.x, b.y, b.width, b.height]; })()"
    )


def colours(browser, selector):
    """How often each colour is in a canvas."""
    return browser.evaluate(
        f"(() => {{ const c = document.querySelector('{selector}'), d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data, n = {};"
        " for (let i = 0; i < d.length; i += 4) { const k = `${d[i]},${d[i+1]},${d[i+2]}`; n[k] = (n[k] ?? 0) + 1; }"
        " return n; })()"
    )


def text(browser, identifier):
    return browser.evaluate(f"document.getElementById('{identifier}').textContent")


def choose(browser, identifier, value):
    browser.evaluate(
        f"(() => {{ const e = document.getElementById('{identifier}'); e.value = '{value}';"
        " e.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    browser.settle()


HOST, DEVICE, SHARED = "0,114,178", "230,159,0", "0,158,115"


def test_nothing_is_wrong_and_nothing_is_asked_for(report):
    assert report.browser.complaints() == []
    assert report.browser.requests() == [report.path.as_uri()]
    assert report.browser.evaluate("document.getElementById('trouble').hidden")


@pytest.mark.parametrize("picture", ["#overtime", "#blocks"])
def test_each_kind_is_drawn(report, picture):
    found = colours(report.browser, picture)
    for colour in (HOST, DEVICE, SHARED):
        assert found.get(colour, 0) > 500, found


def test_memory_over_time_is_that_of_the_history(report):
    """The heights of the picture are the bytes in use and held: each column has the most of its time."""
    shown = report.browser.evaluate(
        "(() => { const o = zeusmReport.overtime, s = o.series, v = zeusmReport.view;"
        " return [[...s.tops], [...s.held], s.count, o.width, v.x0, v.x1]; })()"
    )
    tops, held, count, width, x0, x1 = shown
    found = report.replay
    levels = [0] * len(found.places)
    holding = 0
    expected, expected_held = [None] * width, [0] * width

    def note(column):
        if expected[column] is None or sum(levels) >= sum(expected[column]):
            expected[column] = list(levels)
        expected_held[column] = max(expected_held[column], holding)

    column = 0
    note(0)
    events = found.history.events
    live = {}
    for row, time in enumerate(events.time):
        to = min(width - 1, int((time - x0) / (x1 - x0) * width))
        while column < to:
            column += 1
            note(column)
        size, address = events.size[row], events.address[row]
        place = found.places.index((events.kind[row], events.device[row]))
        match found.history.actions[events.action[row]]:
            case "allocate":
                levels[place] += size
                live[address] = size
            case "free":
                levels[place] -= live.pop(address)
            case "reserve":
                holding += size
            case "release":
                holding -= size
        note(column)
    while column < width - 1:
        column += 1
        note(column)
    for at in range(width):
        assert tops[at * count : at * count + 3] == expected[at], at
    assert held == expected_held


def test_pointing_at_a_block_names_it(report):
    """Each of a few blocks says its size, address and stack where it is drawn."""
    browser, blocks = report.browser, report.replay.blocks
    left, top, _, _ = box(browser, "#blocks")
    largest = sorted(range(len(blocks)), key=lambda number: -blocks[number].size)[:200]
    lived = [n for n in largest if blocks[n].last - blocks[n].first > EVENTS / 20][:3]
    for number in lived:
        x, y = browser.evaluate(
            f"(() => {{ const b = zeusmReport.blocks, i = {number}, d = zeusmReport.data.block, v = zeusmReport.view;"
            " const x = (b.x(v.at(d.first[i])) + b.x(v.at(d.last[i]))) / 2, y = (d.position[i] + d.size[i] / 2) / b.extent * b.height;"
            " return [b.left + x, b.top + y]; })()"
        )
        browser.mouse("mouseMoved", left + x, top + y)
        browser.settle()
        said = text(browser, "blocks-readout")
        assert f"({blocks[number].size} bytes)" in said
        assert f"at {blocks[number].address:#x}" in said
        assert f"layer_{blocks[number].stack} (/home/a/model/layers.py:" in said
    browser.mouse("mouseMoved", left + 100, top - 100)


def test_pointing_at_a_time_says_how_much(report):
    browser = report.browser
    left, top, width, _ = box(browser, "#overtime")
    browser.mouse("mouseMoved", left + width / 2, top + 100)
    browser.settle()
    said = text(browser, "overtime-readout")
    assert " in use, " in said
    assert "device: " in said


def test_drag_zooms_and_the_button_shows_all(report):
    browser = report.browser
    left, top, width, height = box(browser, "#overtime")
    begin, end = browser.evaluate("[zeusmReport.view.begin, zeusmReport.view.end]")
    browser.drag((left + width * 0.4, top + height / 2), (left + width * 0.6, top + height / 2))
    browser.settle()
    x0, x1 = browser.evaluate("[zeusmReport.view.x0, zeusmReport.view.x1]")
    assert 0.3 * end < x0 < 0.45 * end
    assert 0.5 * end < x1 < 0.65 * end
    assert colours(browser, "#blocks").get(DEVICE, 0) > 500
    browser.evaluate("document.getElementById('reset').click()")
    assert browser.evaluate("[zeusmReport.view.x0, zeusmReport.view.x1]") == [begin, end]


def test_drag_in_the_blocks_zooms_both_ways(report):
    browser = report.browser
    left, top, width, height = box(browser, "#blocks")
    browser.drag((left + width * 0.3, top + height * 0.3), (left + width * 0.6, top + height * 0.5))
    browser.settle()
    y0, y1, extent = browser.evaluate(
        "[zeusmReport.blocks.y0, zeusmReport.blocks.y1, zeusmReport.blocks.extent]"
    )
    assert 0.1 < (y1 - y0) / extent < 0.3
    assert browser.evaluate("zeusmReport.view.x0") > 0


def test_keys_alone_are_enough(report):
    browser = report.browser
    browser.evaluate("document.getElementById('blocks').focus()")
    seen = set()
    for _ in range(30):
        browser.key("ArrowDown")
        seen.add(text(browser, "blocks-readout"))
    assert len(seen) > 3
    assert any("bytes) of" in each for each in seen)
    span = browser.evaluate("zeusmReport.view.x1 - zeusmReport.view.x0")
    browser.key("+", "+")
    assert browser.evaluate("zeusmReport.view.x1 - zeusmReport.view.x0") == pytest.approx(span / 2)
    browser.key("0", "0")
    assert browser.evaluate("zeusmReport.view.x1 - zeusmReport.view.x0") == pytest.approx(span)
    focusable = browser.evaluate(
        "[...document.querySelectorAll('canvas')].every(c => c.tabIndex === 0 && c.getAttribute('aria-label'))"
    )
    assert focusable


def test_colours_by_stack_and_the_axis_of_events(report):
    browser = report.browser
    choose(browser, "colour", "stack")
    entries = browser.evaluate(
        "[...document.querySelectorAll('#legend span')].map(e => e.textContent)"
    )
    assert len(entries) == 9
    assert entries[-1] == "other stacks"
    assert all(entry.startswith("layer_") for entry in entries[:-1])
    choose(browser, "axis", "events")
    assert browser.evaluate("zeusmReport.view.end") == len(report.replay.time)
    choose(browser, "vertical", "order")
    assert browser.evaluate("zeusmReport.blocks.extent") == len(report.replay.blocks)
    assert len(colours(browser, "#blocks")) > 8
    assert browser.complaints() == []


def labels(browser, picture):
    """What a picture writes when it is drawn."""
    return browser.evaluate(
        "(() => { const own = CanvasRenderingContext2D.prototype.fillText, said = [];"
        " CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { said.push(text); own.call(this, text, ...rest); };"
        f" zeusmReport.{picture}.redraw(); CanvasRenderingContext2D.prototype.fillText = own; return said; }})()"
    )


def in_bytes(label):
    number, unit = label.split()
    return float(number) * 1024 ** ("B", "KiB", "MiB", "GiB").index(unit)


@pytest.mark.parametrize("zoom", [False, True])
def test_the_axes_have_round_steps(report, zoom):
    browser = report.browser
    if zoom:
        left, top, width, height = box(browser, "#blocks")
        start = left + width * 0.3, top + height * 0.31
        browser.drag(start, (left + width * 0.6, top + height * 0.58))
        browser.settle()
    said = labels(browser, "blocks")
    sizes = [in_bytes(each) for each in said if each.endswith("B")]
    steps = {below - above for above, below in itertools.pairwise(sizes)}
    assert len(sizes) >= 3
    assert len(steps) == 1
    assert math.log2(steps.pop()).is_integer()
    assert (sizes[0] == 0) == (not zoom)
    times = [float(each.split()[0]) for each in said if each.endswith("s")]
    steps = {round(after - before, 6) for before, after in itertools.pairwise(times)}
    assert len(steps) == 1
    assert f"{steps.pop():.0e}"[0] in "125"
    choose(browser, "vertical", "order")
    numbers = [
        int(each.replace(",", "")) for each in labels(browser, "blocks") if each[-1] not in "Bs"
    ]
    assert numbers[:1] == [0]
    assert {str(number).rstrip("0") for number in numbers[1:2]} <= {"1", "2", "5"}


def test_a_phone_shows_the_whole_width(report):
    report.browser.load(report.path, width=390, height=844)
    report.browser.until(READY)
    report.browser.settle()
    root = "document.documentElement"
    assert report.browser.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
    for picture in ("overtime", "blocks"):
        assert len([each for each in labels(report.browser, picture) if each.endswith("s")]) >= 2


def test_slabs_show_blocks_and_holes(report):
    browser = report.browser
    slabs = report.replay.history.slabs
    assert browser.evaluate("document.querySelectorAll('canvas.slab').length") == len(slabs.address)
    partly = next(
        n
        for n, used in enumerate(slabs.used)
        if used > 0 and slabs.block[n] and used < slabs.size[n] / 2
    )
    selector = f'canvas[data-slab="{partly}"]'
    found = colours(browser, selector.replace('"', "\\'"))
    assert found.get("223,227,232", 0) > 100, found  # A hole.
    assert {HOST, DEVICE, SHARED} & set(found)
    left, top, width, _ = box(browser, selector.replace('"', "\\'"))
    said = set()
    for part in range(1, 60):
        browser.mouse("mouseMoved", left + width * part / 60, top + 8)
        said.add(text(browser, "slabs-readout").split(" at ")[0].split(": ")[-1])
    assert "a hole" in said
    assert any(each.endswith("B") for each in said)


def test_the_dark_theme(report):
    browser = report.browser
    light = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    browser.evaluate("document.getElementById('theme').click()")
    browser.settle()
    dark = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    assert (
        colours(browser, "#overtime").get(dark.removeprefix("rgb(").rstrip(")").replace(" ", ""), 0)
        > 1000
    )


def test_text_has_contrast(report):
    """Text on the page's and the panels' background has a contrast of at least 4.5, in both themes."""
    script = """(theme => {
      document.documentElement.dataset.theme = theme;
      const style = getComputedStyle(document.documentElement);
      const light = name => {
        const n = parseInt(style.getPropertyValue(name).trim().slice(1), 16);
        const part = s => { const v = (n >> s & 255) / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
        return 0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0);
      };
      const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
      return Math.min(...["--text", "--muted", "--bad", "--accent"].flatMap(t => ["--page", "--panel"].map(b => ratio(t, b))));
    })"""
    for theme in ("light", "dark"):
        assert report.browser.evaluate(f"{script}('{theme}')") >= 4.5


def test_an_empty_history_is_no_error(shown):
    report = shown(empty())
    assert report.browser.complaints() == []
    assert report.browser.evaluate("document.getElementById('trouble').hidden")


def test_a_hostile_name_runs_nothing(shown):
    tree = simulate(200, seed=6)
    tree["functions"] = [
        "<img src=x onerror=window.bad=1></script><script>window.bad=1</script>"
    ] * len(tree["functions"])
    report = shown(tree)
    choose(report.browser, "colour", "stack")
    assert report.browser.evaluate("window.bad === undefined")
    assert report.browser.complaints() == []
    assert len(report.browser.requests()) == 1


def test_many_events_stay_usable(shown):
    """200,000 events are drawn, and a zoom draws them again, within seconds on a busy machine."""
    report = shown(simulate(200_000, seed=7))
    took = report.browser.evaluate(
        "(() => { const start = performance.now(); zeusmReport.overtime.redraw(); zeusmReport.blocks.redraw();"
        " return performance.now() - start; })()"
    )
    assert took < 10_000
    assert colours(report.browser, "#blocks").get(DEVICE, 0) > 500


def test_the_flame_graph_is_drawn(browser, tmp_path):
    found = replay(parse(simulate(500, seed=8)))
    path = tmp_path / "flames.svg"
    flamegraph.write(found, path)
    browser.load(path)
    boxes = browser.evaluate(
        "[...document.querySelectorAll('g')].map(g => [g.querySelector('rect').getBoundingClientRect().width,"
        " g.querySelector('text').getBoundingClientRect().width, g.querySelector('text').textContent])"
    )
    assert len(boxes) > 10
    assert all(label <= width for width, label, words in boxes if words), boxes
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
