// SPDX-License-Identifier: Apache-2.0

// What is remembered of limits: the server's memory first, then what it says every two seconds.

const names = ["use", "limit", "granted", "rate"];
const most = 300;
const tracks = new Map(); // id of a limit to columns

// track gives the columns of a limit: at in ms, and names; undefined: not there yet.
export const track = (id) => tracks.get(id);

// want asks for what is remembered of those limits that nobody has asked for yet.
export async function want(ids, drawn) {
  const missing = ids.filter((id) => !tracks.has(id));
  if (missing.length === 0) return;
  for (const id of missing) tracks.set(id, { at: [], ...Object.fromEntries(names.map((n) => [n, []])) });
  const query = new URLSearchParams(missing.map((id) => ["quota", id]));
  const answer = await fetch(`/api/history?${query}`).catch(() => null);
  if (!answer?.ok) return;
  const { at, quotas } = await answer.json();
  for (const id of missing) {
    const t = tracks.get(id);
    if (!t) continue;
    const from = t.at.length ? at.findIndex((ms) => ms >= t.at[0]) : at.length; // of what has been added meanwhile
    const keep = from < 0 ? at.length : from;
    t.at.unshift(...at.slice(0, keep));
    for (const n of names) t[n].unshift(...(quotas[id]?.[n] ?? at.map(() => null)).slice(0, keep));
  }
  drawn();
}

// add adds what a view says.
export function add(view) {
  const at = Date.parse(view.at);
  const rows = new Map(view.quotas.map((q) => [q.id, q]));
  for (const [id, t] of tracks) {
    if (t.at.length && at <= t.at.at(-1)) continue;
    const q = rows.get(id);
    t.at.push(at);
    for (const n of names) t[n].push(q?.[n] ?? null);
    if (t.at.length > most) for (const column of Object.values(t)) column.shift();
  }
}

// forget forgets all: after a pause there would be holes.
export const forget = () => tracks.clear();

// highest is the highest known number of a column; undefined: none is known.
export const highest = (column) => column.reduce((m, n) => (n === null ? m : Math.max(m ?? n, n)), undefined);
