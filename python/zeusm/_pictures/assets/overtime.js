"use strict";
// Memory over time: bytes in use, stacked by kind or by stack, and the bytes held from the driver.

class OverTime extends Picture {
  constructor(view, canvas, readout) {
    super(view, canvas, readout);
    const { data } = view;
    this.blockSteps = stepsOf(data.block, data.rows);
    this.regionSteps = stepsOf(data.region, data.rows);
    this.by = "place";
  }
  // For each column of pixels, the groups' bytes at the column's highest total, and the most bytes held.
  aggregate(groups) {
    const { view, width } = this, { data } = view, count = 9;
    const tops = new Float64Array(width * count), held = new Float64Array(width);
    const level = new Float64Array(count);
    let total = 0, holding = 0, column = 0, best = 0;
    const change = (steps, row, apply) => {
      if (steps.ends[row] >= 0) apply(steps.ends[row], -1);
      if (steps.begins[row] >= 0) apply(steps.begins[row], 1);
    };
    const block = (i, sign) => { level[groups.of(i)] += sign * data.block.size[i]; total += sign * data.block.size[i]; };
    const region = (i, sign) => { holding += sign * data.region.size[i]; };
    const note = () => {
      if (total >= best) { best = total; tops.set(level, column * count); }
      held[column] = Math.max(held[column], holding);
    };
    const advance = to => {
      while (column < to) { column++; best = total; tops.set(level, column * count); held[column] = holding; }
    };
    for (const i of this.blockSteps.initial) block(i, 1);
    for (const i of this.regionSteps.initial) region(i, 1);
    let row = 0;
    for (; row < data.rows && view.at(row) < view.x0; row++) {
      change(this.blockSteps, row, block);
      change(this.regionSteps, row, region);
    }
    note();
    for (; row < data.rows && view.at(row) <= view.x1; row++) {
      advance(Math.min(width - 1, Math.floor(this.x(view.at(row)))));
      change(this.blockSteps, row, block);
      change(this.regionSteps, row, region);
      note();
    }
    advance(width - 1);
    return { tops, held, count };
  }
  draw() {
    const { context, width, height, left, top, ratio, view } = this;
    const groups = this.groups = groupsOf(view.data, this.by);
    const series = this.series = this.aggregate(groups);
    let most = 1;
    for (let x = 0; x < width; x++) {
      let sum = 0;
      for (let g = 0; g < series.count; g++) sum += series.tops[x * series.count + g];
      most = Math.max(most, sum, series.held[x]);
    }
    this.verticalAxis(0, most, binaryStep(most / 6), bytes, value => top + height - value / most * height, width);
    for (let g = 0; g < series.count; g++) {
      context.fillStyle = colourOf(`--g${g}`);
      for (let x = 0; x < width; x++) {
        let below = 0;
        for (let h = 0; h < g; h++) below += series.tops[x * series.count + h];
        const own = series.tops[x * series.count + g];
        if (own <= 0) continue;
        const y0 = top + height - (below + own) / most * height, y1 = top + height - below / most * height;
        context.fillRect(left + x, y0, 1, Math.max(y1 - y0, 1));
      }
    }
    context.strokeStyle = colourOf("--text");
    context.lineWidth = 1.5 * ratio;
    context.beginPath();
    for (let x = 0; x < width; x++) context.lineTo(left + x + 0.5, top + height - series.held[x] / most * height);
    context.stroke();
    this.marks();
  }
  marks() {
    const { context, left, top, height, width, ratio, view } = this, bottom = top + height;
    // One mark of a kind in a column of pixels is enough.
    const columns = rows => [...new Set(rows.map(row => left + Math.floor(this.x(view.at(row)))))]
      .filter(x => x >= left && x <= left + width);
    context.fillStyle = colourOf("--text");
    for (const x of columns(view.data.trims)) context.fillRect(x, bottom - 7 * ratio, 1.5 * ratio, 7 * ratio);
    context.textAlign = "center";
    context.textBaseline = "bottom";
    context.font = `${13 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
    if (view.data.rows) for (const x of columns([view.data.peak])) context.fillText("▼", x, top);
    context.fillStyle = colourOf("--bad");
    for (const x of columns(view.data.fails)) {
      context.fillRect(x, top, ratio, height);
      context.fillText("✕", x, top);
    }
  }
  inspect({ x }) {
    const column = Math.min(Math.max(Math.floor(x - this.left), 0), this.width - 1);
    const { tops, held, count } = this.series;
    const parts = [];
    let sum = 0;
    for (let g = count - 1; g >= 0; g--) {
      const own = tops[column * count + g];
      sum += own;
      if (own > 0) parts.push(`${this.groups.names[g] ?? "other"}: ${bytes(own)}`);
    }
    const text = `${this.view.label(this.fromX(x))}: ${bytes(sum)} in use, ${bytes(held[column])} held. ${parts.join("; ")}`;
    if (this.readout.textContent !== text) this.readout.textContent = text;
    return column;
  }
}
