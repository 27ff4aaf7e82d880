// SPDX-License-Identifier: Apache-2.0

// The page shows what the control plane says of itself every two seconds, by server-sent events.

import { refresh, showEnvoys } from "./envoys.js";
import { clock } from "./format.js";
import { show } from "./dom.js";
import { showLimits } from "./limits.js";
import { overridden, showOverview, spoken } from "./overview.js";
import { showRates } from "./rates.js";
import { showEstimates, showQueues, showRefusals } from "./refusals.js";
import "./search.js";
import { add, forget } from "./tracks.js";

const live = document.getElementById("live"), said = document.getElementById("said");
const lateAfter = 8000; // ms without news
const again = 3000; // ms until it is asked again, when it did not answer with events
let source, heard = 0, retry;

async function showAll(v) {
  document.title = `weir: ${overridden(v) ? `enforce ${v.enforce}` : v.ready ? v.problem ? "policy with errors" : "ready" : "not ready"}`;
  showOverview(v);
  add(v);
  showLimits(v);
  showRefusals(v);
  showQueues(v);
  showRates(v);
  await refresh();
  showEnvoys(v);
  showEstimates(v);
  if (said.textContent !== spoken(v)) said.textContent = spoken(v);
}

function hear(event) {
  if (Date.now() - heard > lateAfter) forget(); // there would be a hole
  heard = Date.now();
  const v = JSON.parse(event.data);
  live.classList.remove("lost");
  show(live, "live, ", clock(v.at));
  showAll(v);
}

function listen() {
  clearTimeout(retry);
  source?.close();
  source = new EventSource("/api/events");
  source.onmessage = hear;
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) retry = setTimeout(listen, again);
  };
}

function look() {
  if (document.hidden || Date.now() - heard < lateAfter) return;
  live.classList.add("lost");
  if (heard === 0) show(live, "no answer; asking again");
  else show(live, "no news since ", clock(heard), "; asking again");
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) listen();
  else source?.close();
});
setInterval(look, 1000);
listen();
