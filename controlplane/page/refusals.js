// SPDX-License-Identifier: Apache-2.0

// Who is refused by which tier and why, and who waits.

import { h, show, table } from "./dom.js";
import { amount, count, known, percent, sum, unknown } from "./format.js";

const none = (text) => h("p", { class: "soft" }, text);

// local gives the counters of a name of the Envoy of this machine.
const local = (v, name) => v.local?.counters.filter((c) => c.name === name) ?? [];

function where(v) {
  if (!v.local) {
    return none("Why a call was refused, and by which class it waited, Envoys count: weir_requests_total, weir_queue_waits_total at their admin address. " +
      "The control plane is told calls by limit only.");
  }
  if (v.local.problem) return h("p", { class: "odd" }, `The Envoy of this machine does not say what it counts: ${v.local.problem}`);
  return none(v.local.address ? `Counted by the Envoy whose admin address is ${v.local.address}.` : "The Envoy of this machine is not there yet.");
}

function reasons(v) {
  const rows = local(v, "weir_requests_total").filter((c) => c.labels.decision !== "admit").sort((a, b) => b.total - a.total);
  const l = (c, name) => c.labels[name] ?? "–";
  return rows.length > 0 && table("Refused or changed, by reason", ["reason", "decision", "tier", "dimension", "#last 10 minutes", "#since its start"],
    rows.map((c) => [l(c, "reason"), l(c, "decision"), l(c, "tier"), l(c, "dimension"), amount(c.recent), count(c.total)]));
}

function tiers(v) {
  const rows = v.tiers.filter((t) => known(t.recent));
  return rows.length > 0 && table("Denied by tier", ["tier", "#limits in use", "#denied in 10 minutes", "#denied in all"],
    rows.map((t) => [t.tier, count(t.limits), amount(t.recent), count(t.denied)]));
}

function limits(v) {
  const rows = v.quotas.filter((q) => q.denied > 0).sort((a, b) => (b.recent ?? 0) - (a.recent ?? 0) || b.denied - a.denied).slice(0, 20);
  return rows.length > 0 && table("Denied by limit", ["limit", "dimension", "#denied in 10 minutes", "#denied in all"],
    rows.map((q) => [q.quota, q.dimension, amount(q.recent), count(q.denied)]));
}

export function showRefusals(v) {
  const parts = [tiers(v), limits(v), reasons(v)].filter(Boolean);
  const unsaid = v.fleet_unknown || (v.quotas.length > 0 && !v.quotas.some((q) => q.seen));
  show(document.querySelector("#refusals .content"), parts,
    unsaid && h("p", null, "Calls denied by limit: ", unknown(), v.fleet_unknown ? `: ${v.fleet_unknown}.` : ", for no Envoy reports them."),
    !parts.length && !unsaid && none("Nobody has been refused."), where(v));
}

// classes says of each class how many wait, and how long those waited that wait no more.
function classes(v) {
  const entered = local(v, "weir_queued_total"), left = local(v, "weir_queue_waits_total");
  const names = [...new Set([...entered, ...left].map((c) => c.labels.class).filter(Boolean))].sort();
  return names.length > 0 && table("Waiting by class", ["class", "#waiting now", "#waited in 10 minutes", "half waited up to", "95 of 100 up to", "#since its start"],
    names.map((name) => {
      const mine = left.filter((c) => c.labels.class === name), total = sum(mine, (c) => c.total);
      const waiting = Math.max(sum(entered.filter((c) => c.labels.class === name), (c) => c.total) - total, 0);
      return [name, count(waiting), count(sum(mine, (c) => c.recent)), within(mine, 0.5), within(mine, 0.95), count(total)];
    }));
}

// bounds are those of weir_queue_waits_total, in order.
const bounds = ["100ms", "300ms", "1s", "3s", "10s", "30s", "60s", "more"];

// within is the bound under which a share of the waits of the last ten minutes was.
function within(waits, share) {
  const of = (b) => waits.find((c) => c.labels.within === b)?.recent ?? 0;
  let left = sum(bounds, of) * share;
  if (left === 0) return "–";
  for (const b of bounds) if ((left -= of(b)) <= 0) return b === "more" ? "more than 60s" : b;
  return "more than 60s";
}

function waiting(v) {
  const rows = v.quotas.filter((q) => q.queued > 0).sort((a, b) => b.queued - a.queued).slice(0, 20);
  return rows.length > 0 && table("Waiting by limit", ["limit", "dimension", "#waiting now"], rows.map((q) => [q.quota, q.dimension, count(q.queued)]));
}

export function showQueues(v) {
  const seen = v.quotas.some((q) => q.seen), parts = [classes(v), waiting(v)].filter(Boolean);
  show(document.querySelector("#queues .content"), parts,
    !seen && (v.fleet_unknown || v.quotas.length > 0) && h("p", null, "Calls that wait, by limit: ", unknown(), v.fleet_unknown ? `: ${v.fleet_unknown}.` : ", for no Envoy reports them."),
    !parts.length && (seen || v.local) && none("Nobody waits."), where(v));
}

// showEstimates shows how far counts are off, by model.
export function showEstimates(v) {
  const rows = v.estimates.map((e) => [e.model, off(e.ratio - 1), `± ${(e.spread * 100).toFixed(1)} %`, count(e.weight), count(e.envoys)]);
  const hows = errors(v);
  show(document.querySelector("#estimates .content"),
    rows.length > 0 && table("By model, as Envoys have learned from answers",
      ["model", "#provider counts", "#half of the answers within", "#weight of the answers", "#Envoys"], rows),
    rows.length > 0 && none("What a provider counts beside what weir does before it is put right. Models that the policy does not name are shown by their keys."),
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
