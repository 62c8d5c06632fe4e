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
    return { width, interactive: !paper, ...chosen.get(figure) };
  };

  const draw = (figure) => {
    const name = figure.dataset.figure;
    const place = figure.querySelector(".picture");
    const made = Figures.draw(name, data, options(figure));
    figure.hidden = made === null;
    if (made === null) return;
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", figure.querySelector("figcaption").textContent);
    place.replaceChildren(made);
    if (Figures.all[name].values) cells(figure, place, made);
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
