// SPDX-License-Identifier: Apache-2.0

// Charts by uPlot. Each stands in for numbers that the page has as text, too.

import { compact } from "./format.js";

const charts = new Map(); // elements to what is drawn there

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function axis(values, size) {
  const line = { stroke: color("line"), width: 1 };
  return { stroke: color("soft"), grid: line, ticks: line, font: "12px system-ui, sans-serif", size, values };
}

function options(element, spec) {
  const seconds = (u) => u.scales.x.max - u.scales.x.min < 180;
  const time = (u, all) => all.map((t) => new Date(t * 1000).toLocaleTimeString("sv", { hour: "2-digit", minute: "2-digit", second: seconds(u) ? "2-digit" : undefined }));
  return {
    width: Math.max(element.clientWidth, 50), height: element.clientHeight, legend: { show: false }, cursor: { show: false },
    scales: { y: { range: (u, low, high) => [0, spec.top ?? Math.max(high * 1.08, 1)] } },
    axes: [{ ...axis(time, 26), space: 80 }, axis((u, all) => all.map(spec.value ?? compact), 56)],
    hooks: { draw: [(u) => mark(u, charts.get(element)?.marks ?? [])] },
    series: [{}, ...spec.series.map((s) => ({
      stroke: color(s.color), width: s.width ?? 2, dash: s.dash, fill: s.fill && `${color(s.color)}33`, points: { show: false },
      paths: s.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    }))],
  };
}

// mark writes what happened at a time, where there is room for its words.
function mark(u, marks) {
  const { ctx, bbox } = u, ratio = devicePixelRatio;
  let free = -Infinity;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color("soft");
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.setLineDash([2 * ratio, 4 * ratio]);
  for (const { at, text } of marks) {
    const x = u.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const width = ctx.measureText(text).width + 6 * ratio, left = Math.min(x + 4 * ratio, bbox.left + bbox.width - width);
    if (left < free) continue;
    ctx.fillText(text, left, bbox.top + bbox.height - 6 * ratio);
    free = left + width;
  }
  ctx.restore();
}

// draw draws, or brings up to date what is drawn. data is columns: seconds since 1970, then each series; marks are what happened: at, in
// seconds, and text.
export function draw(element, spec, data, marks) {
  let c = charts.get(element);
  if (c?.spec.kind === spec.kind) {
    c.data = data;
    c.marks = marks;
    c.plot.setData(data);
    return;
  }
  c?.plot.destroy();
  c = { spec, data, marks };
  charts.set(element, c); // before it draws: it looks for its marks
  c.plot = new uPlot(options(element, spec), data, element);
  sizes.observe(element);
}

// sweep forgets charts whose elements are gone.
export function sweep() {
  for (const [element, c] of charts) {
    if (element.isConnected) continue;
    c.plot.destroy();
    sizes.unobserve(element);
    charts.delete(element);
  }
}

const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const width = Math.max(target.clientWidth, 50), plot = charts.get(target)?.plot;
    if (plot && plot.width !== width) plot.setSize({ width, height: target.clientHeight });
  }
});

// Colors are drawn, so other ones have to be drawn anew.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [element, c] of charts) {
    c.plot.destroy();
    c.plot = new uPlot(options(element, c.spec), c.data, element);
  }
});
