"use strict";
// Puts the pictures together.

function drawSlabs(data) {
  const readout = document.getElementById("slabs-readout");
  const byAddress = new Map();
  data.live.slab.forEach((slab, i) => { (byAddress.get(slab) ?? byAddress.set(slab, []).get(slab)).push(i); });
  for (const canvas of document.querySelectorAll("canvas.slab")) {
    const slab = Number(canvas.dataset.slab), members = byAddress.get(slab) ?? [];
    const size = data.slab.size[slab], slot = data.slab.block[slab];
    canvas.width = canvas.getBoundingClientRect().width * Math.min(window.devicePixelRatio || 1, 2);
    canvas.height = 16;
    const context = canvas.getContext("2d"), scale = canvas.width / size;
    const colour = colourOf(`--g${data.slab.place[slab] % 9}`);
    context.fillStyle = colourOf("--held");
    context.fillRect(0, 0, canvas.width, 16);
    for (const i of members) {
      const x = data.live.offset[i] * scale;
      context.fillStyle = colour;
      context.globalAlpha = 0.35;
      context.fillRect(x, 0, Math.max((slot || data.live.size[i]) * scale, 1), 16);
      context.globalAlpha = 1;
      context.fillRect(x, 0, Math.max(data.live.size[i] * scale, 1), 16);
    }
    const inspect = at => {
      const offset = at * size;
      const found = members.find(i => data.live.offset[i] <= offset && offset < data.live.offset[i] + (slot || data.live.size[i]));
      readout.hidden = false;
      readout.textContent = found === undefined
        ? `0x${(data.slab.address[slab] + BigInt(Math.floor(offset))).toString(16)}: a hole`
        : `${bytes(data.live.size[found])} at 0x${(data.slab.address[slab] + BigInt(data.live.offset[found])).toString(16)}\n`
          + frameLines(data, data.live.stack[found]).join("\n");
    };
    canvas.onpointermove = event => inspect(event.offsetX / canvas.getBoundingClientRect().width);
    let key = 0.5;
    canvas.onkeydown = event => {
      const by = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
      if (by === undefined) return;
      key = Math.min(Math.max(key + by, 0), 0.999);
      inspect(key);
      event.preventDefault();
    };
  }
}

function legend(data, by) {
  const groups = groupsOf(data, by), element = document.getElementById("legend");
  element.replaceChildren();
  groups.names.forEach((name, i) => {
    if (name === null || i > 8) return;
    const entry = document.createElement("span");
    entry.style.setProperty("--swatch", `var(--g${i})`);
    entry.textContent = name;
    element.append(entry);
  });
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

async function main() {
  const byId = id => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  const data = await readData(byId("data"));
  const view = new View(data);
  const overtime = new OverTime(view, byId("overtime"), byId("overtime-readout"));
  const blocks = new Blocks(view, byId("blocks"), byId("blocks-readout"));
  const refresh = () => { overtime.queue(); blocks.queue(); drawSlabs(data); legend(data, overtime.by); };
  byId("colour").onchange = event => { overtime.by = blocks.by = event.target.value; refresh(); };
  byId("axis").onchange = event => view.setAxis(event.target.value);
  byId("vertical").onchange = event => blocks.setVertical(event.target.value);
  byId("zoom-in").onclick = () => view.zoom(0.5);
  byId("zoom-out").onclick = () => view.zoom(2);
  byId("left").onclick = () => view.move(-0.25);
  byId("right").onclick = () => view.move(0.25);
  byId("reset").onclick = () => blocks.reset();
  byId("theme").onclick = () => { setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); refresh(); };
  dark.onchange = event => { setTheme(event.matches ? "dark" : "light"); refresh(); };
  refresh();
  window.zeusmReport = { data, view, overtime, blocks };
}

main().catch(error => {
  const trouble = document.getElementById("trouble");
  trouble.hidden = false;
  trouble.textContent = `The pictures could not be drawn. ${error.message}`;
});
