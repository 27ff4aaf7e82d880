// SPDX-License-Identifier: Apache-2.0

// The search for a tenant, a user or a request tree.

import { h, show, table } from "./dom.js";
import { refused } from "./refusals.js";
import { amount, count, unknown, windowOf } from "./format.js";

const form = document.getElementById("find"), content = document.querySelector("#search .content");

function found(s) {
  const limits = s.quotas.map((q) => [q.quota, `${q.dimension}, ${q.unit} ${windowOf(q.window)}`, amount(q.use), count(q.limit), count(q.granted),
    (q.holders ?? []).map((o) => o.node).join(", ") || "–", q.seen ? `${amount(q.recent)} / ${count(q.denied)}` : unknown(), q.seen ? count(q.queued) : unknown()]);
  return [
    h("p", null, "Known as the ", s.tier, " ", h("code", null, s.key), "."), s.note && h("p", { class: "odd" }, s.note),
    limits.length ? table(`Limits of this ${s.tier}`, ["limit", "dimension", "#used", "#limit", "#lent", "Envoys", "#denied in 10 minutes / in all", "#waiting"], limits)
      : h("p", null, "No Envoy has reported a limit of it. So it has sent nothing lately, or its limits are not shared over the fleet."),
    refused(`Why calls of this ${s.tier} were refused`, s.denials) || h("p", null, "No call of it has been refused in the last 10 minutes."),
  ];
}

form.onsubmit = async (event) => {
  event.preventDefault();
  const answer = await fetch(`/api/search?${new URLSearchParams(new FormData(form))}`).catch(() => null);
  if (!answer) show(content, h("p", { class: "bad" }, "The control plane does not answer."));
  else if (!answer.ok) show(content, h("p", { class: "bad" }, await answer.text()));
  else show(content, found(await answer.json()));
};
