"use strict";
// The part of the recording that the pictures show, and what all pictures share: sizes, axes, pointer and keys.

class View {
  constructor(data) {
    this.data = data;
    this.listeners = [];
    this.setAxis("time");
  }
  setAxis(axis) {
    const rows = this.data.rows, times = this.data.event.time;
    const first = rows ? times[0] : 0, margin = rows ? Math.max((times[rows - 1] - first) * 0.02, 1) : 1;
    this.axis = axis;
    this.begin = axis === "time" ? Math.max(first - margin, 0) : 0;
    this.end = axis === "time" ? (rows ? times[rows - 1] : 0) + margin : Math.max(rows, 1);
    this.all();
  }
  all() {
    this.set(this.begin, this.end);
  }
  // The horizontal place of a row; rows before and after the recording are at its ends.
  at(row) {
    if (row < 0) return this.begin;
    if (row >= this.data.rows) return this.end;
    return this.axis === "time" ? this.data.event.time[row] : row;
  }
  label(x) {
    return this.axis === "time" ? time(x) : `event ${Math.round(x).toLocaleString("en")}`;
  }
  set(x0, x1) {
    const least = this.axis === "time" ? 10 : 4;
    const width = Math.min(Math.max(x1 - x0, least), this.end - this.begin);
    this.x0 = Math.min(Math.max(x0, this.begin), this.end - width);
    this.x1 = this.x0 + width;
    for (const listener of this.listeners) listener();
  }
  zoom(factor, centre = (this.x0 + this.x1) / 2) {
    this.set(centre - (centre - this.x0) * factor, centre + (this.x1 - centre) * factor);
  }
  move(part) {
    const by = (this.x1 - this.x0) * part;
    this.set(this.x0 + by, this.x1 + by);
  }
}

const colourOf = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A colour as ImageData has it.
function packed(name) {
  const value = parseInt(colourOf(name).slice(1), 16);
  return (0xff000000 | (value & 0xff) << 16 | (value & 0xff00) | value >> 16) >>> 0;
}

// A canvas with margins for axes. Subclasses draw into `left`, `top`, `width` and `height`, all in device pixels.
class Picture {
  constructor(view, canvas, readout) {
    Object.assign(this, { view, canvas, readout, cursor: null, drag: null });
    this.context = canvas.getContext("2d", { willReadFrequently: true });
    this.isQueued = false;
    view.listeners.push(() => this.queue());
    new ResizeObserver(() => this.queue()).observe(canvas);
    canvas.addEventListener("pointerdown", event => this.onDown(event));
    canvas.addEventListener("pointermove", event => this.onMove(event));
    canvas.addEventListener("pointerup", event => this.onUp(event));
    canvas.addEventListener("pointercancel", () => { this.drag = null; this.overlay(); });
    canvas.addEventListener("pointerleave", () => { if (!this.drag) { this.cursor = null; this.overlay(); } });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", event => this.onKey(event));
  }
  queue() {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => { this.isQueued = false; this.redraw(); });
  }
  redraw() {
    const box = this.canvas.getBoundingClientRect();
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.canvas.width = Math.max(1, Math.round(box.width * this.ratio));
    this.canvas.height = Math.max(1, Math.round(box.height * this.ratio));
    this.left = Math.round(76 * this.ratio);
    this.top = Math.round(16 * this.ratio);
    this.width = Math.max(1, this.canvas.width - this.left - Math.round(10 * this.ratio));
    this.height = Math.max(1, this.canvas.height - this.top - Math.round(24 * this.ratio));
    this.context.fillStyle = colourOf("--page");
    this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.draw();
    this.horizontalAxis();
    this.still = this.context.getImageData(0, 0, this.canvas.width, this.canvas.height);
    this.overlay();
  }
  font() {
    this.context.font = `${12 * this.ratio}px system-ui, "DejaVu Sans", sans-serif`;
    this.context.fillStyle = colourOf("--muted");
  }
  horizontalAxis() {
    const { context, view, ratio } = this, span = view.x1 - view.x0;
    const step = niceStep(span / Math.max(3, this.width / ratio / 130));
    this.font();
    context.textAlign = "center";
    context.textBaseline = "top";
    context.strokeStyle = colourOf("--line");
    context.beginPath();
    const ticks = view.axis === "events" ? Math.max(1, step) : step;
    for (let x = Math.ceil(view.x0 / ticks) * ticks; x <= view.x1; x += ticks) {
      const at = this.left + (x - view.x0) / span * this.width;
      context.moveTo(at, this.top + this.height);
      context.lineTo(at, this.top + this.height + 4 * ratio);
      const half = context.measureText(view.label(x)).width / 2;
      context.fillText(view.label(x), Math.min(at, this.canvas.width - half), this.top + this.height + 6 * ratio);
    }
    context.stroke();
  }
  // Labels at the multiples of a step from `low` to `high`, with lines of the length `across`; `place` has the pixel of a value.
  verticalAxis(low, high, step, label, place, across) {
    const { context, left, ratio } = this;
    this.font();
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
      const y = Math.round(place(value));
      context.fillText(label(value), left - 8 * ratio, y);
      context.fillRect(left - 4 * ratio, y, 4 * ratio, 1);
      context.globalAlpha = 0.25;
      context.fillRect(left, y, across, 1);
      context.globalAlpha = 1;
    }
  }
  x(value) {
    return (value - this.view.x0) / (this.view.x1 - this.view.x0) * this.width;
  }
  fromX(pixel) {
    return this.view.x0 + (pixel - this.left) / this.width * (this.view.x1 - this.view.x0);
  }
  // The cursor and the chosen rectangle, above the picture as it was drawn.
  overlay() {
    if (!this.still) return;
    const { context } = this;
    context.putImageData(this.still, 0, 0);
    if (this.drag) {
      const { x0, y0, x1, y1 } = this.chosen();
      context.strokeStyle = colourOf("--text");
      context.lineWidth = this.ratio;
      context.strokeRect(x0, y0, x1 - x0, y1 - y0);
    } else if (this.cursor) {
      this.highlight(this.inspect(this.cursor));
      context.fillStyle = colourOf("--muted");
      context.fillRect(Math.round(this.cursor.x), this.top, this.ratio, this.height);
    }
  }
  highlight() {}
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const within = (value, low, size) => Math.min(Math.max(value, low), low + size - 1);
    return {
      x: within((event.clientX - box.left) * this.ratio, this.left, this.width),
      y: within((event.clientY - box.top) * this.ratio, this.top, this.height),
    };
  }
  chosen() {
    const { from, to } = this.drag;
    return { x0: Math.min(from.x, to.x), x1: Math.max(from.x, to.x), y0: this.top, y1: this.top + this.height };
  }
  onDown(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.start = this.point(event);
  }
  onMove(event) {
    const point = this.point(event);
    if (this.start && Math.hypot(point.x - this.start.x, point.y - this.start.y) > 5 * this.ratio) {
      this.drag = { from: this.start, to: point };
    }
    this.cursor = point;
    this.overlay();
  }
  onUp() {
    const chosen = this.drag && this.chosen();
    this.start = this.drag = null;
    if (chosen) this.zoomTo(chosen);
  }
  zoomTo({ x0, x1 }) {
    this.view.set(this.fromX(x0), this.fromX(x1));
  }
  reset() {
    this.view.all();
  }
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    this.cursor ??= { x: this.left + this.width / 2, y: this.top + this.height / 2 };
    const step = 6 * this.ratio, centre = this.fromX(this.cursor.x);
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in moves) {
      const [dx, dy] = moves[event.key];
      if (event.shiftKey && dx) this.view.move(dx / 4);
      else if (event.shiftKey) this.moveVertically(dy / 4);
      else {
        this.cursor.x = Math.min(Math.max(this.cursor.x + dx * step, this.left), this.left + this.width - 1);
        this.cursor.y = Math.min(Math.max(this.cursor.y + dy * step, this.top), this.top + this.height - 1);
      }
    } else if (event.key === "+" || event.key === "=") this.zoomAt(0.5, centre);
    else if (event.key === "-") this.zoomAt(2, centre);
    else if (event.key === "0" || event.key === "Escape") this.reset();
    else return;
    event.preventDefault();
    this.overlay();
  }
  moveVertically() {}
  zoomAt(factor, centre) {
    this.view.zoom(factor, centre);
  }
}

// The least of 1, 2 and 5 times a power of ten that is not below `value`.
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= value * 0.999);
}

// The least power of two that is not below `value`, and 1: a round number of bytes.
const binaryStep = value => 2 ** Math.max(0, Math.ceil(Math.log2(value)));
