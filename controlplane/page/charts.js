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
  const time = (u, all) => all.map((t) => new Date(t * 1000).toLocaleTimeString("sv", { hour: "2-digit", minute: "2-digit" }));
  return {
    width: Math.max(element.clientWidth, 50), height: element.clientHeight, legend: { show: false }, cursor: { show: false },
    scales: { y: { range: (u, low, high) => [0, spec.top ?? Math.max(high * 1.08, 1)] } },
    axes: [{ ...axis(time, 26), space: 60 }, axis((u, all) => all.map(spec.value ?? compact), 48)],
    series: [{}, ...spec.series.map((s) => ({
      stroke: color(s.color), width: s.width ?? 2, dash: s.dash, fill: s.fill && `${color(s.color)}33`, points: { show: false },
      paths: s.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    }))],
  };
}

// draw draws, or brings up to date what is drawn. data is columns: seconds since 1970, then each series.
export function draw(element, spec, data) {
  let c = charts.get(element);
  if (!c || c.kind !== spec.kind) {
    c?.plot.destroy();
    c = { kind: spec.kind, spec, plot: new uPlot(options(element, spec), data, element) };
    charts.set(element, c);
    sizes.observe(element);
  } else {
    c.plot.setData(data);
  }
  c.data = data;
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
