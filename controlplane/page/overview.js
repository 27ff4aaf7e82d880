// SPDX-License-Identifier: Apache-2.0

// Health at a glance, and what is wrong.

import { h, show } from "./dom.js";
import { amount, clock, count, known, percent, span, sum, unknown } from "./format.js";

const pill = (text, how) => h("span", { class: `pill ${how}` }, text);

// pills is the state in a few words.
export function pills(v) {
  const mode = v.policy?.mode;
  return [
    pill(v.ready ? "ready" : "not ready", v.ready ? "good" : "bad"),
    overridden(v) && pill(`enforce ${v.enforce}`, "bad"),
    mode && pill(`mode ${mode}`, mode === "enforce" ? "good" : "bad"),
    v.problem && pill("policy file has errors", "bad"),
  ];
}

const note = (how, text, more) => h("div", { class: `note ${how}` }, h("strong", null, text), more && h("pre", null, more));

// overridden says whether an admin's word holds in place of the policy's modes.
export const overridden = (v) => v.enforce && v.enforce !== "on";

// turned says that an admin has turned everything off, or to shadow, and since when.
export function turned(v) {
  if (!overridden(v)) return [];
  const what = v.enforce === "off" ? "Nothing is counted and nothing is refused." : "Nothing is refused; what would have been is counted.";
  return [h("strong", null, `Enforce is ${v.enforce}. `), what, v.enforce_since && [" Since ", clock(v.enforce_since), v.enforce_by && ` by ${v.enforce_by}`, "."],
    " ", h("code", null, "weir enforce on"), " ends it."];
}

// alerts is all that somebody should do something about.
export function alerts(v) {
  return [
    v.not_ready && note("bad", "Not ready", v.not_ready),
    !overridden(v) && v.policy && v.policy.mode !== "enforce" && note("bad", `The policy's mode is ${v.policy.mode}: nothing is refused for its limits.`),
    v.problem && note("bad", v.policy ? "The policy file has errors; the last good policy stays." : "The policy file has errors.", v.problem.message),
    v.access.problem && note("bad", "New certificates or tokens are not taken; the old ones are in force.", v.access.problem),
    v.store_away && note("bad", "The store does not answer. Until it does no central limit is decided; Envoys use up the shares that they have, and then their floors.",
      v.store_away),
    v.lead && !v.lead.leads && (v.lead.leader
      ? note("odd", `The control plane ${v.lead.leader} hands out the limits of the fleet: its page shows them. This one, ${v.lead.name}, passes on what Envoys report.`)
      : note("bad", "No control plane hands out the limits of the fleet.", v.fleet_unknown)),
    v.fleet_store_error && note("bad", "What the fleet's limits are kept in fails: nothing more is given of stocks.", v.fleet_store_error),
    v.learning && note("odd", "Learning what Envoys hold of an earlier control plane. Until then little is lent."),
    v.policy?.notices?.length > 0 && h("details", { class: "note odd" }, h("summary", null, `${v.policy.notices.length} notice${v.policy.notices.length === 1 ? "" : "s"} about the policy`),
      v.policy.notices.map((n) => h("pre", null, `${n.file}:${n.line}: ${n.path}: ${n.text}`))),
  ];
}

const tile = (name, value, more) => h("div", { class: "tile" }, h("dt", null, name), h("dd", null, value, h("small", null, more)));

function envoys(v) {
  const { current = 0, behind = 0, rejecting = 0, refused = 0 } = v.states;
  const words = [[rejecting, "reject it", "bad"], [refused, "refused", "bad"], [behind, "not there yet", "odd"]]
    .filter(([n]) => n > 0).map(([n, text, how], i) => [i > 0 && ", ", h("span", { class: how }, `${n} ${text}`)]);
  return tile("Envoys with the policy", `${current} of ${v.envoys_total}`, words.length ? words : v.envoys_total ? "all have it" : "none connected yet");
}

// unsaid is why something is not known of limits.
const unsaid = (v, why) => v.fleet_unknown || (v.quotas.length ? why : "no limit is in use");

function fullest(v) {
  const with_use = v.quotas.filter((q) => known(q.use) && q.limit > 0);
  if (with_use.length === 0) return tile("Fullest limit", unknown(), unsaid(v, "no Envoy says what it uses"));
  const q = with_use.reduce((a, b) => (b.use / b.limit > a.use / a.limit ? b : a));
  return tile("Fullest limit", percent(q.use / q.limit), `${q.quota}, ${q.dimension}`);
}

// calls is a sum of what Envoys report.
function calls(v, name, n, more) {
  const heard = !v.fleet_unknown && v.reports > 0;
  return tile(name, heard ? count(n) : unknown(), heard ? more : v.fleet_unknown || "no Envoy has reported anything");
}

// overview is the tiles.
export function overview(v) {
  return h("dl", { class: "tiles" },
    envoys(v), fullest(v),
    calls(v, "Refused", sum(v.reasons.filter((d) => d.decision === "deny" && !d.shadow), (d) => d.recent), "calls in the last 10 minutes"),
    calls(v, "Waiting", sum(v.waits, (w) => w.now), "calls, now"),
    v.fleet_unknown ? tile("Limits in use", unknown(), v.fleet_unknown) : tile("Limits in use", amount(v.quotas_total), v.quotas_total > v.quotas.length ? `the busiest ${v.quotas.length} are shown` : ""),
    v.policy ? tile("Policy", h("code", null, v.policy.version), ["since ", clock(v.policy.loaded_at)]) : tile("Policy", "none", "yet"));
}

// about is the small print.
export function about(v) {
  const cert = v.access.expires && ["; its certificate ends ", clock(v.access.expires)];
  return ["Policy ", h("code", null, v.file), "; callers ask at ", h("code", null, v.listen), "; control plane up for ",
    span(Date.parse(v.at) - Date.parse(v.started)),
    v.lead?.replicas?.length > 0 && `; other replicas: ${v.lead.replicas.join(", ")}`, v.lead?.epoch > 0 && `; epoch ${v.lead.epoch}`, v.store && [", central limits in ", h("code", null, v.store)], cert, "."];
}

// spoken is what a screen reader is told when it changes.
export function spoken(v) {
  const wrong = (v.states.rejecting ?? 0) + (v.states.refused ?? 0);
  return [v.ready ? "Ready." : "Not ready.", overridden(v) && `Enforce is ${v.enforce}.`, v.problem && "The policy file has errors.", wrong > 0 && `${wrong} Envoys do not take the policy.`,
    v.store_away && "The store does not answer."].filter(Boolean).join(" ");
}

export function showOverview(v) {
  const banner = document.getElementById("banner"), words = turned(v);
  banner.hidden = words.length === 0;
  show(banner, words);
  show(document.getElementById("state"), pills(v));
  show(document.getElementById("alerts"), alerts(v));
  show(document.querySelector("#overview .content"), overview(v));
  show(document.getElementById("about"), about(v));
}
