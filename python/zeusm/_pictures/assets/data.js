"use strict";
// The page's data: a gzip stream of a length, a JSON header, and columns of numbers behind it.

async function readData(element) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("The pictures need a browser of 2023 or later (DecompressionStream); the tables do not.");
  }
  const text = atob(element.textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const types = { d: Float64Array, i: Int32Array, b: Int8Array, Q: BigUint64Array };
  const base = 8 + Math.ceil(length / 8) * 8;
  const tables = {};
  for (const [table, name, type, offset, count] of header.columns) {
    tables[table] ??= {};
    tables[table][name] = new types[type](buffer, base + offset, count);
  }
  return { ...header, ...tables };
}

function bytes(value, digits = 4) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < 5) { value /= 1024; unit++; }
  return `${Number(value.toPrecision(digits))} ${units[unit]}`;
}

function time(ns) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const [factor, unit] = units.find(([factor]) => Math.abs(ns) >= factor) ?? units[3];
  return `${Number((ns / factor).toPrecision(6))} ${unit}`;
}

function frameLines(data, stack) {
  if (stack < 0) return ["no stack recorded"];
  return data.stacks[stack].map(frame => {
    const [file, line, name] = data.frames[frame];
    return `${data.functions[name]} (${data.files[file]}:${line})`;
  });
}

function shortFrame(data, stack) {
  if (stack < 0) return "no stack recorded";
  if (data.stacks[stack].length === 0) return "empty stack";
  const [file, line, name] = data.frames[data.stacks[stack][0]];
  return `${data.functions[name]} (${data.files[file].split("/").pop()}:${line})`;
}

// Which interval each row begins and ends, -1 for none.
function stepsOf(intervals, rows) {
  const begins = new Int32Array(rows).fill(-1), ends = new Int32Array(rows).fill(-1), initial = [];
  for (let i = 0; i < intervals.first.length; i++) {
    if (intervals.first[i] < 0) initial.push(i); else begins[intervals.first[i]] = i;
    if (intervals.last[i] < rows) ends[intervals.last[i]] = i;
  }
  return { begins, ends, initial };
}

// Groups of blocks by what the colours show: places, or the stacks with the highest peaks of their own and the rest.
function groupsOf(data, by) {
  if (by === "place") {
    return { names: data.places, of: i => data.block.place[i] % 9, order: data.places.map((_, i) => i) };
  }
  const number = new Map(data.topStacks.map((stack, i) => [stack, i]));
  const names = data.topStacks.map(stack => shortFrame(data, stack));
  while (names.length < 8) names.push(null);
  names.push("other stacks");
  return { names, of: i => number.get(data.block.stack[i]) ?? 8 };
}
