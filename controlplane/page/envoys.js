// SPDX-License-Identifier: Apache-2.0

// Each Envoy: what it made of the policy, and what it may spend.

import { facts, h, show, table } from "./dom.js";
import { clock, count, span } from "./format.js";

const content = document.querySelector("#envoys .content");
const states = { current: ["has the policy", "good"], behind: ["not there yet", "odd"], rejecting: ["rejects the policy", "bad"], refused: ["refused", "bad"] };
const open = new Map(); // ids of Envoys whose details are open, to what they hold
let last;

const stale = (e) => (e.silent > 0 ? `no report for too long about ${e.silent}` : e.behind > 0 ? `newest grants of ${e.behind} not acknowledged` : "all acknowledged");

function types(e) {
  return e.types?.length > 0 && table(`Configuration of ${e.id}`, ["type", "sent", "accepted", "rejected"], e.types.map((t) => [t.name,
    h("code", null, t.sent), h("code", null, t.acked ?? "–"),
    t.nack ? [h("span", { class: "bad" }, "NACK of ", h("code", null, t.nack.version), " at ", clock(t.nack.at)), h("pre", null, t.nack.message)] : "never"]));
}

function held(e) {
  const list = open.get(e.id);
  if (!list) return h("p", { class: "soft" }, "…");
  if (list.length === 0) return h("p", { class: "soft" }, "It holds no share of a limit of the fleet.");
  return table(`Shares of ${e.id}`, ["limit", "dimension", "#may spend", "#of", "#spent", "#asks for", "#lease ends in", "state"], list.map(({ holder: s, ...q }) => [
    q.quota, q.dimension, count(s.share), count(q.limit), s.used === undefined ? "–" : count(s.used), s.demand === undefined ? "–" : count(s.demand),
    q.kind !== "shares" ? "–" : s.lease_ms ? span(s.lease_ms) : "over",
    q.kind === "whole" ? "has it whole" : s.silent ? h("span", { class: "bad" }, "silent") : s.behind ? h("span", { class: "odd" }, "not acknowledged") : "acknowledged"]));
}

async function load(id) {
  const answer = await fetch(`/api/envoys/${encodeURIComponent(id)}`).catch(() => null);
  if (answer?.ok && open.has(id)) open.set(id, await answer.json());
}

function toggled(e, id) {
  if (e.target.open === open.has(id)) return;
  if (!e.target.open) open.delete(id);
  else open.set(id, null) && load(id).then(() => showEnvoys(last));
}

function one(e) {
  const [word, how] = states[e.state] ?? [e.state, "odd"];
  const nacks = (e.types ?? []).filter((t) => t.nack).length;
  return h("details", { class: "envoy", "data-key": `envoy-${e.id}-${e.since}`, ontoggle: (event) => toggled(event, e.id) },
    h("summary", null, h("strong", null, e.id), " ", h("span", { class: how }, word), " ",
      h("span", { class: "soft" }, e.policy || "none", e.shares ? `, ${e.shares} shares` : "", e.lease_ms ? `, lease ${span(e.lease_ms)}` : "", nacks ? `, ${nacks} NACK` : "")),
    e.refused && h("pre", { class: "bad" }, e.refused), e.problem && h("pre", { class: "bad" }, e.problem), (e.notes ?? []).map((n) => h("pre", { class: "odd" }, n)),
    facts([["connected since", clock(e.since)], ["Envoy", e.envoy], ["cluster", e.cluster], ["filter", e.wasm],
      ["policy in force", e.policy || "none"], ["shares", e.whole ? "none: it has each limit for itself" : e.shares ? `${e.shares}; ${stale(e)}` : "none"]]),
    types(e), open.has(e.id) && held(e));
}

export function showEnvoys(v) {
  last = v;
  show(content, v.envoys.map(one),
    v.envoys_total > v.envoys.length && h("p", { class: "soft" }, `${v.envoys.length} of ${v.envoys_total} are shown, those first that something is wrong with.`),
    v.envoys.length === 0 && h("p", { class: "soft" }, "None has connected. ", h("code", null, "weir bootstrap"), " prints what to start one with."));
}

// refresh asks again for what the open ones hold.
export const refresh = () => Promise.all([...open.keys()].map(load));
