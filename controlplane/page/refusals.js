// SPDX-License-Identifier: Apache-2.0

// Who is refused by which tier and why, and who waits.

import { h, show, table } from "./dom.js";
import { clock, count, percent, sum, unknown } from "./format.js";

const none = (text) => h("p", { class: "soft" }, text);

// local gives the counters of a name of the Envoy of this machine.
const local = (v, name) => v.local?.counters.filter((c) => c.name === name) ?? [];

// unsaid is why it is not known what becomes of calls; undefined: it is.
const unsaid = (v) => v.fleet_unknown || (v.reports > 0 ? undefined : "no Envoy has reported anything");

// whys are the reasons in words. docs/denial.md says more.
const whys = {
  limit_exceeded: "the limit has less left than the call needs, for now", quota_exhausted: "a limit of a day or more is used up",
  request_too_large: "the call needs more than the limit ever admits", queue_full: "nobody else may wait", queue_timeout: "it waited as long as it may",
  retry_budget_exhausted: "the request tree has used up its retries", no_share: "the Envoy has been granted no part of the limit",
  provider_cooling: "the provider has asked for a pause", fanout_refused: "not all branches fit", not_metered: "the path cannot be counted",
  unreadable_body: "the body is no JSON object", unknown_prefix: "no provider has the path", bad_identity: "an identity header came twice",
  bad_path: "a dot segment behind an escaped slash", cas_contention: "too many workers at one bucket at once", internal: "weir failed",
};

const reason = (d) => h("div", { class: "why" }, h("code", null, d.reason), " ", h("span", { class: "soft" }, whys[d.reason]));
const decision = (d) => (d.shadow ? "only watched" : { deny: "refused", degrade: "degraded", spill: "spilled" }[d.decision] ?? d.decision);
const limitOf = (d) => (d.who ? `${d.who}${d.dimension ? ` ${d.dimension}` : ""}${d.limit ? `, ${count(d.limit)}` : ""}` : "no limit");

function reasons(v) {
  return v.reasons.length > 0 && table("By tier and reason", ["tier", "dimension", "reason", "outcome", "#calls in 10 minutes", "last"],
    v.reasons.map((d) => [d.tier || "no limit", d.dimension || "–", reason(d), decision(d), count(d.recent), clock(d.last)]));
}

// refused is a table of who was refused by what.
export function refused(caption, denials) {
  return denials.length > 0 && table(caption, ["limit that refused", "whose calls", "class", "reason", "outcome", "#calls in 10 minutes", "last"],
    denials.map((d) => [limitOf(d), d.tenant || "–", d.class || "–", reason(d), decision(d), count(d.recent), clock(d.last)]));
}

export function showRefusals(v) {
  const why = unsaid(v);
  show(document.querySelector("#refusals .content"), reasons(v), refused("By limit and caller", v.denials.slice(0, 50)),
    v.denials.length > 50 && none(`The 50 most frequent of ${v.denials.length}. The search shows those of one caller.`),
    why ? h("p", null, "Calls refused: ", unknown(), `: ${why}.`) : v.reasons.length === 0 && none("Nobody has been refused in the last 10 minutes."));
}

// classes says of each class how many wait, and how long those waited that wait no more.
function classes(v) {
  return v.waits.length > 0 && table("Waiting by class", ["class", "#waiting now", "#waited in 10 minutes", "half waited up to", "95 of 100 up to", "#in all"],
    v.waits.map((w) => [w.class || "–", count(w.now), count(sum(w.recent, (n) => n)), within(w.recent, 0.5), within(w.recent, 0.95), count(w.calls)]));
}

// bounds are those by which waits are counted, in order.
const bounds = ["100ms", "300ms", "1s", "3s", "10s", "30s", "60s", "more than 60s"];

// within is the bound under which a share of the waits of the last ten minutes was.
function within(waits, share) {
  let left = sum(waits, (n) => n) * share;
  if (left === 0) return "–";
  return bounds[waits.findIndex((n) => (left -= n) <= 0)] ?? bounds.at(-1);
}

function waiting(v) {
  const rows = v.quotas.filter((q) => q.queued > 0).sort((a, b) => b.queued - a.queued).slice(0, 20);
  return rows.length > 0 && table("Waiting for what another Envoy has, by limit", ["limit", "dimension", "#waiting now"], rows.map((q) => [q.quota, q.dimension, count(q.queued)]));
}

export function showQueues(v) {
  const parts = [classes(v), waiting(v)].filter(Boolean), why = unsaid(v);
  show(document.querySelector("#queues .content"), parts,
    why ? h("p", null, "Calls that wait: ", unknown(), `: ${why}.`) : !parts.length && none("Nobody has waited."));
}

// showEstimates shows how far counts are off, by model.
export function showEstimates(v) {
  const rows = v.estimates.map((e) => [e.model, off(e.ratio - 1), `± ${(e.spread * 100).toFixed(1)} %`, count(e.weight), count(e.envoys)]);
  const hows = errors(v);
  show(document.querySelector("#estimates .content"),
    rows.length > 0 && table("By model, as Envoys have learned from answers",
      ["model", "#provider counts", "#half of the answers within", "#weight of the answers", "#Envoys"], rows),
    rows.length > 0 && none("What a provider counts beside what weir does before it is put right. Models that the policy does not name are shown by their keys."),
    v.local?.problem && h("p", { class: "odd" }, `The Envoy of this machine does not say what it counts: ${v.local.problem}`),
    hows, !rows.length && none("By model: not known. No Envoy has reported what it has learned."));
}

const off = (part) => (Math.abs(part) < 0.0005 ? "the same" : `${(Math.abs(part) * 100).toFixed(1)} % ${part > 0 ? "more" : "less"}`);

function errors(v) {
  const all = local(v, "weir_input_errors_total");
  const rows = [...new Set(all.map((c) => c.labels.how))].sort().map((how) => {
    const mine = all.filter((c) => c.labels.how === how), total = sum(mine, (c) => c.total);
    const upTo = (bound) => sum(mine.filter((c) => Number(c.labels.within) <= bound), (c) => c.total) / total;
    return [how, percent(upTo(5)), percent(upTo(10)), percent(upTo(20)), count(total)];
  });
  return rows.length > 0 && table("Counts that were used, by how they came about (Envoy of this machine)",
    ["how", "#off by 5 % at most", "#by 10 %", "#by 20 %", "#calls"], rows);
}
