// SPDX-License-Identifier: Apache-2.0

// Each limit: how much of it is used, over time.

import { draw, sweep } from "./charts.js";
import { facts, h, show, table } from "./dom.js";
import { clock, count, known, percent, unknown, windowOf } from "./format.js";
import { highest, track, want } from "./tracks.js";

const atFirst = 12;
let all = false; // show more than that
let last; // the view

const content = document.querySelector("#limits .content");
const filter = document.getElementById("filter"), order = document.getElementById("order");
filter.oninput = order.onchange = () => last && showLimits(last);

const spec = {
  kind: "use",
  series: [{ color: "use", fill: true }, { color: "limit", dash: [6, 4], width: 1.5, stepped: true }, { color: "lent", dash: [2, 3], width: 1.5, stepped: true }],
};

const line = (dash) => h("svg", { viewBox: "0 0 30 6", "aria-hidden": "true" }, h("path", { d: "M0 3H30", "stroke-dasharray": dash }));
const keyOf = (name, dash, text) => h("li", null, h("span", { class: `stroke-${name}` }, line(dash)), text);

function legend(lent) {
  return h("ul", { class: "key" }, keyOf("use", undefined, "used in its window"), keyOf("limit", "6 4", "limit in force"),
    lent && keyOf("lent", "2 3", "lent to Envoys"), h("li", null, "over the last 10 minutes"));
}

function bar(part) {
  const how = part >= 0.98 ? " full" : part >= 0.8 ? " near" : "";
  return h("svg", { class: `bar${how}`, viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("rect", { width: Math.min(part, 1) * 100, height: 4 }));
}

function use(q) {
  const of = ` of ${count(q.limit)} ${q.unit} ${windowOf(q.window)}`;
  if (!known(q.use)) return [h("p", { class: "use" }, unknown("Envoys do not say what they use of it"), of), bar(0)];
  const part = q.limit > 0 ? q.use / q.limit : 0;
  return [h("p", { class: "use" }, h("b", null, count(q.use)), of, q.limit > 0 && `, ${percent(part)}`), bar(part)];
}

function more(q) {
  const learned = q.learned && `a limit of ${count(q.learned.limit)}, ${count(q.learned.external)} of it used by others`;
  return facts([
    ["in the policy", q.limit !== q.policy && count(q.policy)],
    ["rate", known(q.rate) && `${percent(q.rate)} of the policy's`],
    ["provider says", learned],
    [q.kind === "whole" ? "held" : "lent", q.kind === "whole" ? "by the Envoy itself, whole" : `${count(q.granted)} to ${q.envoys} Envoy${q.envoys === 1 ? "" : "s"}`],
    ["left to give", q.left],
    ["denied", q.seen ? `${count(q.recent ?? 0)} in 10 minutes, ${count(q.denied)} in all` : unknown("no Envoy reports it")],
    ["waiting", q.seen ? count(q.queued) : unknown("no Envoy reports it")],
    ["ended", q.off && "the policy has it no more; what is out runs out"],
  ].filter(([, v]) => v !== false));
}

// numbers is the chart for those who do not see it.
function numbers(q) {
  const t = track(q.id), rows = [];
  for (let i = (t?.at.length ?? 0) - 1; i >= 0 && rows.length < 10; i -= 30) {
    rows.push([clock(t.at[i]), known(t.use[i]) ? count(t.use[i]) : unknown(), known(t.limit[i]) ? count(t.limit[i]) : unknown()]);
  }
  return table(`${q.quota}, ${q.dimension}, by the minute`, ["time", "#used", "#limit"], rows);
}

function card(q) {
  const t = track(q.id), top = t && highest(t.use);
  const label = `Chart: ${q.quota}, ${q.dimension}, used over the last 10 minutes. ${known(top) ? `At most ${count(top)}.` : "Not known."} The numbers follow it.`;
  return h("article", { class: "card", "data-key": `card-${q.id}` },
    h("h3", null, q.quota, " ", h("span", { class: "soft" }, q.dimension)), use(q),
    h("div", { class: "chart", role: "img", "aria-label": label, "data-keep": true, "data-id": q.id, "data-whole": q.kind === "whole" }), more(q),
    h("details", null, h("summary", null, "Numbers over time"), numbers(q)));
}

function chosen(v) {
  const part = filter.value.trim().toLowerCase();
  const list = v.quotas.filter((q) => `${q.quota} ${q.dimension}`.toLowerCase().includes(part));
  if (order.value === "full") list.sort((a, b) => (b.use ?? -1) / (b.limit || 1) - (a.use ?? -1) / (a.limit || 1));
  return list;
}

function drawAll() {
  sweep();
  for (const element of content.querySelectorAll(".chart")) {
    const t = track(element.dataset.id);
    if (t?.at.length) draw(element, spec, [t.at.map((ms) => ms / 1000), t.use, t.limit, element.dataset.whole ? t.at.map(() => null) : t.granted]);
  }
}

export function showLimits(v) {
  last = v;
  const list = chosen(v), shown = all ? list : list.slice(0, atFirst);
  show(content,
    list.length > 0 && legend(list.some((q) => q.kind !== "whole")),
    list.length === 0 && h("p", { class: "soft" }, v.fleet_unknown ? `Not known here: ${v.fleet_unknown}.` : v.quotas.length ? "None has this in its name." :
      v.reports > 0 ? "No limit is in use now." : "No limit is in use: no Envoy has reported one."),
    h("div", { class: "cards" }, shown.map(card)),
    list.length > shown.length && h("p", { class: "more" }, h("button", { type: "button", onclick: () => { all = true; showLimits(last); } }, `Show all ${list.length}`)));
  drawAll();
  want(shown.map((q) => q.id), () => showLimits(last));
}
