// SPDX-License-Identifier: Apache-2.0

// How numbers and times are written.

import { h } from "./dom.js";

export const known = (n) => n !== null && n !== undefined;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = (n) => whole.format(n);
export const compact = (n) => short.format(n);
export const percent = (part) => `${whole.format(part * 100)} %`;

// amount is a number, or that it is not known.
export const amount = (n) => (known(n) ? count(n) : unknown());
export const unknown = (why) => h("span", { class: "unknown", title: why }, "not known");

// clock is a time of today, with its date if it is of another day.
export function clock(text) {
  const t = new Date(text);
  const day = t.toDateString() === new Date().toDateString() ? "" : `${t.toLocaleDateString("sv")} `;
  return h("time", { datetime: t.toISOString() }, day + t.toLocaleTimeString("sv"));
}

// span writes a time span of ms.
export function span(ms) {
  const s = Math.round(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

// windowOf writes a window as Go does: 1m0s.
export function windowOf(text) {
  const words = { "1s": "second", "1m0s": "minute", "1h0m0s": "hour", "24h0m0s": "day" };
  if (text === "0s") return "in all";
  return words[text] ? `per ${words[text]}` : `in ${text.replace(/(\D)0s$/, "$1").replace(/(\D)0m$/, "$1")}`;
}

export const sum = (list, of) => list.reduce((n, x) => n + (of(x) ?? 0), 0);
