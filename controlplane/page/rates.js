// SPDX-License-Identifier: Apache-2.0

// Rates that follow what providers answer (AIMD): on a time line, each change with its reason.

import { draw } from "./charts.js";
import { h, show, table } from "./dom.js";
import { clock, count, known, percent } from "./format.js";
import { track, want } from "./tracks.js";

const content = document.querySelector("#rates .content");
const most = 6; // lines of a chart
const looks = [["use"], ["lent", [6, 4]], ["odd", [2, 3]], ["good", [10, 3]], ["bad", [4, 4]], ["limit", [1, 3]]];
let last;

const name = (q) => `${q.quota} ${q.dimension}`;

// adaptive are the limits whose rate is known, those first that changed last.
function adaptive(v) {
  const changed = new Map(v.changes.map((c, i) => [name(c), i]));
  return v.quotas.filter((q) => known(q.rate)).sort((a, b) => (changed.get(name(b)) ?? -1) - (changed.get(name(a)) ?? -1)).slice(0, most);
}

function chart(list) {
  const key = h("ul", { class: "key" }, list.map((q, i) => h("li", null,
    h("svg", { viewBox: "0 0 30 6", "aria-hidden": "true", class: `stroke-${looks[i][0]}` }, h("path", { d: "M0 3H30", "stroke-dasharray": looks[i][1]?.join(" ") })),
    `${name(q)}: ${percent(q.rate)} now`)));
  const label = `Chart: rates in percent of the policy's limits over the last 10 minutes. ${list.map((q) => `${name(q)}: ${percent(q.rate)} now.`).join(" ")} The changes follow it.`;
  return [key, h("div", { class: "chart tall", role: "img", "aria-label": label, "data-keep": true })];
}

function changes(v) {
  const rows = v.changes.slice(-50).reverse().map((c) => [clock(c.at), name(c), c.reason, `${percent(c.from)} → ${percent(c.to)}`, count(c.limit)]);
  return rows.length > 0 && table("Changes, the newest first", ["time", "limit", "reason", "#rate", "#limit in force"], rows);
}

export function showRates(v) {
  last = v;
  const list = adaptive(v), rows = changes(v);
  show(content, list.length > 0 && chart(list), rows,
    !rows && h("p", { class: "soft" }, v.fleet_unknown ? `Not known here: ${v.fleet_unknown}.` : list.length ? "No rate has changed." : "No limit in use follows a provider's answers."));
  const element = content.querySelector(".chart");
  const tracks = list.map((q) => track(q.id));
  if (element && tracks.every((t) => t?.at.length === tracks[0].at.length && t.at.length)) {
    const spec = {
      kind: `rates ${list.length}`, top: 1.05, value: percent,
      series: list.map((_, i) => ({ color: looks[i][0], dash: looks[i][1], stepped: true })),
    };
    const marks = v.changes.map((c) => ({ at: Date.parse(c.at) / 1000, text: c.reason }));
    draw(element, spec, [tracks[0].at.map((ms) => ms / 1000), ...tracks.map((t) => t.rate)], marks);
  }
  want(list.map((q) => q.id), () => showRates(last));
}
