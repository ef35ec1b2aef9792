"use strict";
// Each block as a rectangle: its life by its addresses, or by the order of allocation. Pixels are written directly, and a
// second buffer has the block of each pixel, so a million blocks are drawn at once and a look-up costs nothing.

class Blocks extends Picture {
  constructor(view, canvas, readout) {
    super(view, canvas, readout);
    const { block } = view.data;
    this.by = "place";
    this.rank = new Float64Array(block.first.length);
    const initial = [], later = [];
    for (let i = 0; i < block.first.length; i++) (block.first[i] < 0 ? initial : later).push(i);
    later.sort((a, b) => block.first[a] - block.first[b]);
    [...initial.keys()].forEach(n => { this.rank[initial[n]] = n; });
    later.forEach((i, n) => { this.rank[i] = initial.length + n; });
    this.setVertical("address");
  }
  setVertical(vertical) {
    this.vertical = vertical;
    this.extent = Math.max(1, vertical === "address" ? this.view.data.extent : this.rank.length);
    this.setRange(0, this.extent);
  }
  setRange(y0, y1) {
    const size = Math.min(Math.max(y1 - y0, Math.min(this.extent, this.vertical === "address" ? 64 : 4)), this.extent);
    this.y0 = Math.min(Math.max(y0, 0), this.extent - size);
    this.y1 = this.y0 + size;
    this.queue();
  }
  draw() {
    const { context, width, height, view } = this, { block, region } = view.data;
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    this.picks = new Int32Array(width * height).fill(-1);
    pixels.fill(packed("--page"));
    const groups = groupsOf(view.data, this.by);
    const colours = Array.from({ length: 9 }, (_, g) => packed(`--g${g}`));
    const held = packed("--held");
    const yScale = height / (this.y1 - this.y0);
    const fill = (first, last, low, high, colour, pick, border) => {
      const start = view.at(first), end = view.at(last);
      if (end < view.x0 || start > view.x1 || high < this.y0 || low > this.y1) return;
      const x0 = Math.max(0, Math.min(width - 1, Math.floor(this.x(start))));
      const x1 = Math.min(width, Math.max(x0 + 1, Math.round(this.x(end))));
      let y0 = Math.max(0, Math.min(height - 1, Math.floor((low - this.y0) * yScale)));
      const y1 = Math.min(height, Math.max(y0 + 1, Math.round((high - this.y0) * yScale)));
      if (border && y1 - y0 > 3) y0++;
      const right = border && x1 - x0 > 3 ? x1 - 1 : x1;
      for (let y = y0; y < y1; y++) {
        pixels.fill(colour, y * width + x0, y * width + right);
        if (pick >= 0) this.picks.fill(pick, y * width + x0, y * width + x1);
      }
    };
    if (this.vertical === "address") {
      for (let i = 0; i < region.first.length; i++) {
        fill(region.first[i], region.last[i], region.position[i], region.position[i] + region.size[i], held, -1, false);
      }
    }
    for (let i = 0; i < block.first.length; i++) {
      const low = this.vertical === "address" ? block.position[i] : this.rank[i];
      const high = low + (this.vertical === "address" ? block.size[i] : 1);
      fill(block.first[i], block.last[i], low, high, colours[groups.of(i)], i, true);
    }
    context.putImageData(image, this.left, this.top);
    const isAddress = this.vertical === "address", step = (this.y1 - this.y0) / 5;
    this.verticalAxis(this.y0, this.y1, isAddress ? binaryStep(step) : Math.max(1, niceStep(step)),
      isAddress ? value => bytes(value, 6) : value => value.toLocaleString("en"), value => this.top + (value - this.y0) * yScale, 0);
  }
  chosen() {
    const { from, to } = this.drag;
    return { ...super.chosen(), y0: Math.min(from.y, to.y), y1: Math.max(from.y, to.y) };
  }
  zoomTo(chosen) {
    const value = y => this.y0 + (y - this.top) / this.height * (this.y1 - this.y0);
    if (chosen.y1 - chosen.y0 > 8 * this.ratio) this.setRange(value(chosen.y0), value(chosen.y1));
    if (chosen.x1 - chosen.x0 > 8 * this.ratio) super.zoomTo(chosen);
  }
  zoomAt(factor, centre) {
    const y = this.y0 + (this.cursor.y - this.top) / this.height * (this.y1 - this.y0);
    this.setRange(y - (y - this.y0) * factor, y + (this.y1 - y) * factor);
    super.zoomAt(factor, centre);
  }
  reset() {
    this.setRange(0, this.extent);
    super.reset();
  }
  moveVertically(part) {
    const by = (this.y1 - this.y0) * part;
    this.setRange(this.y0 + by, this.y1 + by);
  }
  // The block at a point, or the nearest one within a few pixels: many are a pixel wide.
  blockAt({ x, y }) {
    const column = Math.floor(x - this.left), row = Math.floor(y - this.top), reach = Math.ceil(3 * this.ratio);
    for (let d = 0; d <= reach; d++) {
      for (let dy = -d; dy <= d; dy++) {
        for (let dx = -d; dx <= d; dx++) {
          const px = column + dx, py = row + dy;
          if (px < 0 || py < 0 || px >= this.width || py >= this.height) continue;
          const found = this.picks[py * this.width + px];
          if (found >= 0) return found;
        }
      }
    }
    return -1;
  }
  inspect(point) {
    const i = this.blockAt(point), { data } = this.view, { block } = data;
    let text = `${this.view.label(this.fromX(point.x))}: no block here.`;
    if (i >= 0) {
      const begin = block.first[i] < 0 ? "before the recording" : time(data.event.time[block.first[i]]);
      const end = block.last[i] >= data.rows ? "live at the end" : `freed at ${time(data.event.time[block.last[i]])}`;
      const served = block.hit[i] === 1 ? ", from the pool" : block.hit[i] === 0 ? ", the driver was asked" : "";
      const thread = block.thread[i] >= 0 ? `, thread ${data.threads[block.thread[i]]}` : "";
      text = `${bytes(block.size[i])} (${block.size[i]} bytes) of ${data.places[block.place[i]]} memory at 0x${block.address[i].toString(16)}\n`
        + `allocated: ${begin}${served}${thread}; ${end}\n${frameLines(data, block.stack[i]).join("\n")}`;
    }
    if (this.readout.textContent !== text) this.readout.textContent = text;
    return i;
  }
  highlight(i) {
    if (i < 0) return;
    const { block } = this.view.data, { context } = this;
    const low = this.vertical === "address" ? block.position[i] : this.rank[i];
    const high = low + (this.vertical === "address" ? block.size[i] : 1);
    const scale = this.height / (this.y1 - this.y0);
    const x0 = Math.max(0, this.x(this.view.at(block.first[i]))), x1 = Math.min(this.width, this.x(this.view.at(block.last[i])));
    const y0 = Math.max(0, (low - this.y0) * scale), y1 = Math.min(this.height, (high - this.y0) * scale);
    context.strokeStyle = colourOf("--text");
    context.lineWidth = 2 * this.ratio;
    context.strokeRect(this.left + x0, this.top + y0, Math.max(x1 - x0, 2), Math.max(y1 - y0, 2));
  }
}
