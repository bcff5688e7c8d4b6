"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const svgNamespace = "http://www.w3.org/2000/svg";
  const selected = { c: null, t: null };

  // -- highlighting: one rule fades everything that belongs to another cluster or task -------------------------------
  const sheet = document.head.appendChild(document.createElement("style")).sheet;
  const always = ".chip, .bar [data-c], option";
  const marks = ".point, .dot, .stack button";

  function highlight() {
    while (sheet.cssRules.length) sheet.deleteRule(0);
    for (const kind of ["c", "t"]) {
      if (selected[kind] === null) continue;
      const others = `[data-${kind}]:not([data-${kind}="${Number(selected[kind])}"])`;
      sheet.insertRule(`${others}:not(${always}, ${marks}) { opacity: .32; }`);
      sheet.insertRule(`${others}:is(${marks}) { opacity: .13; }`);
    }
    for (const chip of document.querySelectorAll(".chip[data-pick]")) {
      const kind = chip.dataset.pick;
      chip.setAttribute("aria-pressed", String(chip.dataset[kind] === selected[kind]));
    }
    const list = document.getElementById("task-select");
    if (list) list.value = selected.t ?? "";
    document.getElementById("clear").disabled = selected.c === null && selected.t === null;
    const words = [];
    if (selected.c !== null) words.push(data.clusters[selected.c]);
    if (selected.t !== null) words.push(`task ${data.tasks[selected.t]}`);
    document.getElementById("said").textContent = words.length ? `Highlighted: ${words.join(", ")}` : "Nothing highlighted";
    root.dataset.cluster = selected.c ?? "";
    root.dataset.task = selected.t ?? "";
  }

  function pick(element) {
    const kinds = [...element.dataset.pick];
    const same = kinds.every((kind) => selected[kind] === element.dataset[kind]);
    for (const kind of kinds) selected[kind] = same ? null : element.dataset[kind];
    highlight();
  }

  function clear() {
    selected.c = selected.t = null;
    highlight();
  }

  document.addEventListener("click", (event) => {
    const element = event.target.closest("[data-pick]");
    if (element) pick(element);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") clear();
  });
  document.getElementById("clear").addEventListener("click", clear);
  document.getElementById("task-select")?.addEventListener("change", (event) => {
    selected.t = event.target.value === "" ? null : event.target.value;
    highlight();
  });

  // -- what the pointer is on -----------------------------------------------------------------------------------------
  const tip = document.getElementById("tip");

  function words(element) {
    if (element.dataset.tip !== undefined) return element.dataset.tip;
    const view = data.views[element.dataset.view];
    const i = Number(element.dataset.point);
    const lines = [view.name[i], `${data.tasks[view.task]}, ${data.clusters[view.cluster[i]]}`];
    if (view.alone[i] !== view.cluster[i]) lines.push(`clustered alone: ${data.clusters[view.alone[i]]}`);
    if (view.margin[i] !== null) lines.push(`margin ${view.margin[i].toFixed(2)}`);
    return lines.join("\n");
  }

  document.addEventListener("pointermove", (event) => {
    const element = event.target instanceof Element ? event.target.closest("[data-tip], [data-point]") : null;
    tip.hidden = element === null;
    if (element === null) return;
    tip.textContent = words(element);
    const { width, height } = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, window.innerWidth - width - 8);
    const y = event.clientY + 18 + height > window.innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${Math.max(8, y)}px`;
  });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // -- points ---------------------------------------------------------------------------------------------------------
  const inner = 12;
  const side = 320;

  function place(path, position, size) {
    const x = inner + (position[0] / 1000) * (side - 2 * inner);
    const y = side - inner - (position[1] / 1000) * (side - 2 * inner);
    path.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})`);
  }

  function draw() {
    for (const svg of document.querySelectorAll("svg[data-view]")) {
      const view = data.views[svg.dataset.view];
      const size = view.cluster.length > 400 ? 0.65 : view.cluster.length > 150 ? 0.85 : 1.05;
      const layer = document.createElementNS(svgNamespace, "g");
      view.cluster.forEach((cluster, i) => {
        const path = document.createElementNS(svgNamespace, "path");
        path.setAttribute("d", data.shapes[cluster % data.shapes.length]);
        path.setAttribute("fill", `var(--c${cluster % data.colours})`);
        path.setAttribute("class", "point");
        Object.assign(path.dataset, { view: svg.dataset.view, point: i, c: cluster, pick: "c" });
        place(path, view.place[i], size);
        layer.append(path);
      });
      svg.append(layer);
    }
  }
  draw();

  // -- many tasks are folded; a click unfolds them ---------------------------------------------------------------------
  function fold(button, folded) {
    document.querySelector(`[data-block="${Number(button.dataset.fold)}"]`).classList.toggle("folded", folded);
    button.setAttribute("aria-expanded", String(!folded));
  }
  for (const button of document.querySelectorAll("[data-fold]")) {
    fold(button, true);
    button.addEventListener("click", () => {
      fold(button, button.getAttribute("aria-expanded") === "true");
      hints();
    });
  }

  // -- what can be scrolled sideways shows that it can ------------------------------------------------------------------
  const scrolling = [...document.querySelectorAll(".scroll, .chips")];

  function hint(element) {
    const left = element.scrollLeft > 4;
    const right = element.scrollLeft + element.clientWidth < element.scrollWidth - 4;
    element.dataset.more = left && right ? "both" : left ? "left" : right ? "right" : "";
    if (!element.matches(".scroll")) return;
    let words = element.previousElementSibling;
    if (!words?.matches(".scroll-hint")) {
      words = document.createElement("p");
      words.className = "scroll-hint";
      words.textContent = "Wider than the page: scroll sideways to see all of it.";
      element.before(words);
    }
    words.hidden = element.scrollWidth <= element.clientWidth + 4;
  }
  function hints() {
    scrolling.forEach(hint);
  }
  for (const element of scrolling) element.addEventListener("scroll", () => hint(element), { passive: true });
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", hints);
  window.addEventListener("resize", hints);
  hints();

  // -- light and dark -------------------------------------------------------------------------------------------------
  const theme = document.getElementById("theme");
  const themes = [["", "system"], ["light", "light"], ["dark", "dark"]];
  theme.addEventListener("click", () => {
    const next = (themes.findIndex(([value]) => value === (root.dataset.theme ?? "")) + 1) % themes.length;
    const [value, name] = themes[next];
    if (value) root.dataset.theme = value;
    else delete root.dataset.theme;
    theme.textContent = `Theme: ${name}`;
  });
})();
