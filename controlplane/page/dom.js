// SPDX-License-Identifier: Apache-2.0

// What the page is made of: elements, and a way to bring those that are there up to date without touching what has not changed, so
// that focus, open details, what is selected and where a screen reader is stay where they are.

const svg = new Set(["svg", "rect", "line", "path"]);

// h makes an element. All content is text: no HTML is ever read.
export function h(tag, attributes, ...children) {
  const e = svg.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") e[name] = value;
    else if (value !== undefined && value !== null && value !== false) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// show makes the children of an element what is wanted. Those with a data-key keep their element when they move.
export function show(parent, ...wanted) {
  update(parent, wanted.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false)
    .map((c) => (c instanceof Node ? c : document.createTextNode(c))));
}

function update(parent, wanted) {
  const keyed = new Map();
  for (const c of parent.childNodes) if (c.dataset?.key) keyed.set(c.dataset.key, c);
  let at = parent.firstChild;
  for (const w of wanted) {
    const old = w.dataset?.key ? keyed.get(w.dataset.key) : at;
    if (!old || (!w.dataset?.key && old.dataset?.key) || !same(old, w)) {
      parent.insertBefore(w, at);
      continue;
    }
    if (old === at) at = at.nextSibling;
    else parent.insertBefore(old, at);
    if (old !== w) patch(old, w);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function same(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && a.dataset?.key === b.dataset?.key;
}

function patch(old, wanted) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && name !== "open" && name !== "style") old.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const handler of ["onclick", "ontoggle"]) old[handler] = wanted[handler];
  if (!("keep" in wanted.dataset)) update(old, [...wanted.childNodes]);
}

// table makes a table that can be scrolled by keyboard where it is too wide. A column whose name begins with # is of numbers.
export function table(caption, columns, rows) {
  const number = columns.map((c) => c.startsWith("#"));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", null, caption),
      h("thead", null, h("tr", null, columns.map((c, i) => h("th", { scope: "col", class: number[i] && "n" }, number[i] ? c.slice(1) : c)))),
      h("tbody", null, rows.map((cells) => h("tr", null, cells.map((c, i) => (i === 0
        ? h("th", { scope: "row" }, c) : h("td", { class: number[i] && "n" }, c))))))));
}

// facts makes a list of names and values, without those that are undefined.
export function facts(list) {
  return h("dl", { class: "facts" }, list.filter(([, v]) => v !== undefined && v !== null && v !== "")
    .map(([k, v]) => [h("dt", null, k), h("dd", null, v)]));
}
