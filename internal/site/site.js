// SPDX-License-Identifier: Apache-2.0

// Draws the diagrams, in the colors that the page has, and again when these are changed.
const diagrams = [...document.querySelectorAll("pre.mermaid")].map((place) => ({ place, text: place.textContent }));
const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");

async function draw() {
  const theme = document.body.dataset.theme;
  const dark = theme === "dark" || (theme !== "light" && wantsDark.matches);
  mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: dark ? "dark" : "neutral", themeVariables: dark ? { edgeLabelBackground: "#222" } : {} });
  for (const [i, d] of diagrams.entries()) {
    d.place.innerHTML = (await mermaid.render(`diagram-${i}`, d.text)).svg;
  }
}

if (diagrams.length > 0) {
  const script = document.createElement("script");
  script.src = new URL("mermaid.js", document.currentScript.src);
  script.onload = () => {
    draw();
    wantsDark.addEventListener("change", draw);
    new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
  };
  document.head.append(script);
}

// What scrolls can be scrolled by keyboard, too.
for (const e of document.querySelectorAll(".highlight pre, .table-wrapper")) {
  if (e.scrollWidth > e.clientWidth) e.tabIndex = 0;
}

// What the theme does not say to those who hear the page.
for (const e of document.querySelectorAll("p.caption[role=heading]")) e.ariaLevel = "2";
for (const [selector, label] of [["aside.sidebar-drawer", "Pages"], ["aside.toc-drawer", "On this page"]]) {
  const e = document.querySelector(selector);
  if (e) e.ariaLabel = label;
}
