// The page of a report in a browser: unpacks the data, draws the figures, sorts tables. The page is legible without it.
"use strict";
(async () => {
  const unpack = async () => {
    const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  const data = await unpack();
  // A figure keeps what its reader chose.
  const chosen = new Map();
  let paper = location.hash === "#print";

  const options = (figure) => {
    const width = paper ? 700 : Math.max(320, Math.min(figure.clientWidth, 1030));
    return { width, interactive: !paper, view: paper ? null : view, ...chosen.get(figure) };
  };

  // The window of time that all figures over the replay's time show, in picoseconds; null: everything. It is chosen by drawing over
  // one of them, or typed.
  let view = null;
  const whole = Number(data.replayed?.runtime_ps ?? 0);
  const overTime = () => figures.filter(({ dataset }) => Figures.all[dataset.figure].time);
  const zoomed = document.getElementById("zoom");
  const [factor, unit] = Figures.timeUnit(whole);
  const show = (from, to) => {
    [from, to] = [Math.max(Math.min(from, to), 0), Math.min(Math.max(from, to), whole)];
    if (!(to > from)) [from, to] = [0, whole];
    view = from === 0 && to === whole ? null : { from, to };
    for (const [name, value] of Object.entries({ from, to })) zoomed.querySelector(`[name=${name}]`).value = String(+(value / factor).toPrecision(9));
    overTime().forEach(draw);
  };
  const controls = () => {
    const field = (name) => {
      const label = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { name, type: "number", step: "any", min: 0 });
      input.onchange = () => show(...["from", "to"].map((name) => Number(zoomed.querySelector(`[name=${name}]`).value) * factor));
      label.append(`${name} `, input, ` ${unit}`);
      return label;
    };
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "whole run", onclick: () => show(0, whole) });
    zoomed.append("Time that is shown: ", field("from"), field("to"), button, "Drawing over a figure chooses it, too.");
    zoomed.hidden = false;
    show(0, whole);
  };
  const brush = (svg) => {
    const [left, right, from, to] = svg.getAttribute("data-time").split(" ").map(Number);
    const place = (event) => {
      const box = svg.getBoundingClientRect();
      return Math.min(Math.max(((event.clientX - box.left) / box.width) * Number(svg.getAttribute("width")), left), right);
    };
    const at = (x) => from + ((x - left) / (right - left)) * (to - from);
    svg.classList.add("brush");
    // In front of Plot's own listener, which lets no other one hear of it.
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const start = place(event);
      const mark = Figures.element("rect", { x: start, y: 26, width: 0, height: Number(svg.getAttribute("height")) - 66, fill: "currentColor", "fill-opacity": 0.2 });
      svg.append(mark);
      svg.setPointerCapture(event.pointerId);
      svg.onpointermove = (event) => {
        mark.setAttribute("x", Math.min(start, place(event)));
        mark.setAttribute("width", Math.abs(place(event) - start));
      };
      svg.onpointerup = (event) => {
        svg.onpointermove = svg.onpointerup = null;
        mark.remove();
        if (Math.abs(place(event) - start) > 4) show(at(start), at(place(event)));
      };
    }, true);
    svg.ondblclick = () => show(0, whole);
  };

  // A figure that fails says so in its place; the others are drawn.
  const draw = (figure) => {
    try {
      drawn(figure);
    } catch (error) {
      console.error(error);
      figure.querySelector(".picture").textContent = `This figure cannot be drawn: ${error.message}`;
      figure.hidden = false;
    }
  };
  const drawn = (figure) => {
    const name = figure.dataset.figure;
    const place = figure.querySelector(".picture");
    const made = Figures.draw(name, data, options(figure));
    figure.hidden = made === null;
    if (made === null) return;
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
    place.replaceChildren(made);
    if (Figures.all[name].values) cells(figure, place, made);
    if (made.hasAttribute("data-time") && !paper) brush(made);
  };

  // The value of the cell under the pointer, or where the arrow keys lead.
  const at = new Map();
  const cells = (figure, place, svg) => {
    const { rows, values, order, ranksPerRow, measure } = Figures.all[figure.dataset.figure].values(data, options(figure));
    const output = figure.querySelector("output");
    const box = () => svg.querySelector("image").getBoundingClientRect();
    const name = (row) => {
      const first = (order ? order[row] : row) * ranksPerRow;
      const last = Math.min(first + ranksPerRow, data.head.ranks) - 1;
      return first === last ? `rank ${first}` : `ranks ${first} to ${last}`;
    };
    const show = (row, column) => {
      at.set(figure, [row, column]);
      const value = values[row * rows + column];
      const unit = measure === "messages" ? "messages" : measure === "bytes" ? "B" : "B a message";
      output.textContent = `${name(row)} \u2192 ${name(column)}: ${Figures.exact(Math.round(value))} ${unit}`;
    };
    svg.onpointermove = (event) => {
      const { left, top, width, height } = box();
      const column = Math.floor(((event.clientX - left) / width) * rows);
      const row = Math.floor(((event.clientY - top) / height) * rows);
      if (row >= 0 && row < rows && column >= 0 && column < rows) show(row, column);
    };
    place.tabIndex = 0;
    place.onkeydown = (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      const [row, column] = at.get(figure) ?? [0, 0];
      const within = (value) => Math.min(Math.max(value, 0), rows - 1);
      show(within(row + step[0]), within(column + step[1]));
    };
  };

  const choices = (figure) => {
    const place = figure.querySelector(".choices");
    const offered = { ...Figures.all[figure.dataset.figure].choices };
    if (figure.dataset.figure === "matrix") {
      if (data.replayed?.collectives.matrix.messages.length) offered.layer = ["point-to-point", "collectives", "both"];
      const orders = data.pairs.matrix.orders.map(({ by }) => by);
      if (orders.length) offered.order = ["rank", ...orders];
    }
    for (const [name, values] of Object.entries(offered)) {
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.name = name;
      for (const value of values) select.append(new Option(value, value));
      select.onchange = () => {
        chosen.set(figure, { ...chosen.get(figure), [name]: select.value });
        draw(figure);
      };
      label.append(`${name}: `, select);
      place.append(label);
    }
  };

  const figures = [...document.querySelectorAll("figure[data-figure]")];
  const all = () => figures.forEach(draw);
  figures.forEach(choices);
  all();
  if (overTime().some((figure) => !figure.hidden)) controls();
  addEventListener("beforeprint", () => { paper = true; all(); });
  addEventListener("afterprint", () => { paper = location.hash === "#print"; all(); });
  let later;
  addEventListener("resize", () => { clearTimeout(later); later = setTimeout(all, 150); });

  // A column's head sorts its table: numbers by what they are, not by what they look like.
  for (const head of document.querySelectorAll("th button")) {
    head.onclick = () => {
      const th = head.closest("th");
      const up = th.getAttribute("aria-sort") === "descending";
      const column = [...th.parentNode.children].indexOf(th);
      const body = th.closest("table").tBodies[0];
      const key = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
      const compare = (one, other) => {
        const [a, b] = [key(one), key(other)];
        const order = a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? Number(a) - Number(b) : a.localeCompare(b);
        return up ? order : -order;
      };
      for (const other of th.parentNode.children) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...[...body.rows].sort(compare));
    };
  }

  document.getElementById("theme").onclick = () => {
    const root = document.documentElement;
    const dark = (root.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    root.style.colorScheme = dark ? "light" : "dark";
  };
  document.documentElement.dataset.drawn = "yes";
})().catch((error) => {
  document.getElementById("failed").hidden = false;
  throw error;
});
