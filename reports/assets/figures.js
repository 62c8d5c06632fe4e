// The figures of a report: functions from its data (docs/reports.md) to SVG. They are called by the page in a browser and, for
// `vef report --svg`, by an engine without one: they use nothing but Plot and `document`.
"use strict";
const Figures = (() => {
  const NS = "http://www.w3.org/2000/svg";
  // Okabe and Ito's colours: told apart by everybody, on light and on dark ground.
  const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"];
  const GREY = "#888888";
  const STATES = [
    { key: "initialising", name: "in MPI_Init", colour: COLOURS[4] },
    { key: "computing", name: "computing", colour: COLOURS[2] },
    { key: "collective", name: "in collectives and agreements", colour: COLOURS[1] },
    { key: "reception", name: "waiting for messages", colour: COLOURS[5] },
    { key: "send", name: "sending", colour: COLOURS[3] },
    { key: "finished", name: "finished", colour: "#BBBBBB" },
  ];

  const COMPUTING = STATES[1].colour;

  // Numbers for people. Whole numbers beyond 2^53 come as strings.
  const number = (value) => Number(value);
  const exact = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  // Six digits, in groups; what is no number as it is.
  const plain = (value) => {
    if (typeof value !== "number") return value;
    const [whole, fraction] = String(+value.toPrecision(6)).split(".");
    return fraction ? `${exact(whole)}.${fraction}` : exact(whole);
  };
  const round = (value) => String(+value.toPrecision(3));
  const scaled = (value, units) => {
    let [factor, unit] = units[0];
    for (const [least, name] of units) if (Math.abs(value) >= least) [factor, unit] = [least, name];
    return value === 0 ? "0" : `${round(value / factor)}${unit}`;
  };
  const count = (value) => scaled(value, [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"], [1e15, "P"], [1e18, "E"]]);
  const bytes = (value) => scaled(value, [[1, " B"], [1e3, " kB"], [1e6, " MB"], [1e9, " GB"], [1e12, " TB"], [1e15, " PB"], [1e18, " EB"]]);
  const time = (value) => scaled(value, [[1, " ps"], [1e3, " ns"], [1e6, " \u00b5s"], [1e9, " ms"], [1e12, " s"]]);
  // With one decimal; below one per cent with two digits, and as many decimals where only all would be 100 %.
  const percent = (share) => {
    const decimals = (rest) => Math.min(6, -1 - Math.floor(Math.log10(rest)));
    if (share >= 0.9995 && share < 1) return `${Math.min(100 * share, 99.999999).toFixed(decimals(1 - share))} %`;
    return `${(100 * share).toFixed(share > 0 && share < 0.01 ? decimals(share) : 1)} %`;
  };
  // Rows of a figure stand for `perRow` ranks each, the last one maybe for fewer.
  const ranksIn = (row, perRow, ranks) => Math.min(perRow, ranks - row * perRow);
  const rowName = (row, perRow, ranks) => {
    const [first, many] = [row * perRow, ranksIn(row, perRow, ranks)];
    return many === 1 ? `rank ${first}` : `ranks ${first} to ${first + many - 1}, mean`;
  };
  const means = (sums, perRow, ranks) => sums.map((sum, row) => number(sum) / ranksIn(row, perRow, ranks));
  const meanOf = (perRow) => (perRow > 1 ? `, mean of ${perRow} ranks` : "");
  // The unit in which the axis of times up to `most` is written.
  const timeUnit = (most) => [[1e12, "s"], [1e9, "ms"], [1e6, "\u00b5s"], [1e3, "ns"]].find(([factor]) => most >= 2 * factor) ?? [1, "ps"];

  const element = (name, attributes, ...children) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    for (const child of children) made.append(typeof child === "string" ? document.createTextNode(child) : child);
    return made;
  };

  const label = (x, y, text) => element("text", { x, y, fill: "currentColor", "font-size": 12, "text-anchor": "start" }, text);

  // A row of coloured squares and names at the top of a figure.
  const legend = (svg, entries) => {
    const start = 10;
    let [x, y] = [start, 18];
    for (const { name, colour, dash } of entries) {
      const width = 17 + 6.8 * name.length + 16;
      if (x + width > number(svg.getAttribute("width"))) [x, y] = [start, y + 16];
      const mark = dash === undefined
        ? element("rect", { x, y, width: 11, height: 11, fill: colour })
        : element("line", { x1: x, x2: x + 14, y1: y + 6, y2: y + 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash });
      svg.append(mark, label(x + 17, y + 10, name));
      x += width;
    }
    return svg;
  };

  // Room for a legend below the name of the axis.
  const LEGEND = 42;

  const plot = (options) => Plot.plot({
    document, marginTop: 26, marginBottom: 44, marginLeft: 64, marginRight: 16,
    style: { background: "transparent", fontSize: "12px", overflow: "visible" },
    ...options,
    // The name of the axis stays above the edge with all of its letters.
    x: { tickFormat: plain, labelOffset: (options.marginBottom ?? 44) - 8, ...options.x }, y: { tickFormat: plain, ...options.y },
  });

  // Several pictures in one, each at a place.
  const compose = (width, height, parts) => {
    const svg = element("svg", { xmlns: NS, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, sans-serif", "font-size": 12, fill: "currentColor" });
    for (const { picture, x, y } of parts) {
      picture.setAttribute("x", x);
      picture.setAttribute("y", y);
      svg.append(picture);
    }
    return svg;
  };

  // viridis, in nine steps between which it is interpolated; without its darkest part, invisible on a dark ground.
  const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
  const viridis = (share) => {
    const at = (0.2 + 0.8 * Math.min(Math.max(share, 0), 1)) * (VIRIDIS.length - 1);
    const low = Math.min(Math.floor(at), VIRIDIS.length - 2);
    return VIRIDIS[low].map((from, channel) => Math.round(from + (at - low) * (VIRIDIS[low + 1][channel] - from)));
  };

  // A PNG of `width` by `height` cells as a data URL: `level(at)` is 0 for no colour, else 1 to 255 on viridis.
  const CRC = Array.from({ length: 256 }, (_, n) => {
    for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n >>> 0;
  });
  const png = (width, height, level) => {
    const word = (value) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
    const out = [137, 80, 78, 71, 13, 10, 26, 10];
    const chunk = (name, data) => {
      const body = [...name].map((letter) => letter.charCodeAt(0));
      for (const byte of data) body.push(byte);
      let crc = 0xffffffff;
      for (const byte of body) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
      for (const byte of word(data.length)) out.push(byte);
      for (const byte of body) out.push(byte);
      for (const byte of word((crc ^ 0xffffffff) >>> 0)) out.push(byte);
    };
    chunk("IHDR", [...word(width), ...word(height), 8, 3, 0, 0, 0]);
    const palette = [0, 0, 0];
    for (let n = 1; n < 256; n++) palette.push(...viridis((n - 1) / 254));
    chunk("PLTE", palette);
    chunk("tRNS", [0]);
    const rows = new Uint8Array((width + 1) * height);
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = level(y * width + x);
    // zlib without compression: blocks of at most 65535 bytes.
    const data = [0x78, 1];
    let [a, b] = [1, 0];
    for (let at = 0; at < rows.length; at += 65535) {
      const part = rows.subarray(at, at + 65535);
      const last = at + 65535 >= rows.length ? 1 : 0;
      data.push(last, part.length & 255, part.length >> 8, ~part.length & 255, (~part.length >> 8) & 255);
      for (const byte of part) {
        data.push(byte);
        a = (a + byte) % 65521;
        b = (b + a) % 65521;
      }
    }
    for (const byte of word(((b << 16) | a) >>> 0)) data.push(byte);
    chunk("IDAT", data);
    chunk("IEND", []);
    return `data:image/png;base64,${base64(out)}`;
  };
  const base64 = (data) => {
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const text = [];
    for (let at = 0; at < data.length; at += 3) {
      const three = (data[at] << 16) | ((data[at + 1] ?? 0) << 8) | (data[at + 2] ?? 0);
      text.push(letters[three >> 18], letters[(three >> 12) & 63]);
      text.push(at + 1 < data.length ? letters[(three >> 6) & 63] : "=", at + 2 < data.length ? letters[three & 63] : "=");
    }
    return text.join("");
  };

  // A scale of colours over the positive ones of `values`: logarithmic, or linear from 0.
  const colourScale = (values, linear) => {
    let [least, most] = [Infinity, 0];
    for (const value of values) if (value > 0) [least, most] = [Math.min(least, value), Math.max(most, value)];
    // Values that hardly differ get colours that hardly differ.
    least = Math.min(least, most / 10);
    if (linear) return { least: 0, most, linear, level: (value) => (value > 0 ? 1 + Math.round((254 * value) / most) : 0) };
    const [from, span] = [Math.log(least), Math.log(most) - Math.log(least)];
    const level = (value) => (value > 0 ? 1 + Math.round(254 * (span > 0 ? (Math.log(value) - from) / span : 1)) : 0);
    return { least, most, level };
  };

  // What the colours mean: a strip from the least to the most, at the right of a figure.
  const strip = (svg, x, y, height, { least, most, linear }, format, title) => {
    if (most === 0) return;
    const steps = 32;
    for (let step = 0; step < steps; step++) {
      const [r, g, b] = viridis(1 - step / (steps - 1));
      svg.append(element("rect", { x, y: y + (height / steps) * step, width: 12, height: height / steps + 0.6, fill: `rgb(${r},${g},${b})` }));
    }
    const write = (at, text) => svg.append(label(x + 17, at, text));
    write(y + 10, format(most));
    if (most > least) {
      if (height >= 45) write(y + height / 2 + 4, format(linear ? (most + least) / 2 : Math.sqrt(most * least)));
      write(y + height, format(least));
    }
    svg.append(label(x, y - 8, title));
  };

  // A picture of cells: colours on a logarithmic scale, cells without anything left empty.
  const heat = ({ width, height, columns, rows, values, x, y, format, title, linear, marginLeft = 64 }) => {
    const scale = colourScale(values, linear);
    const [right, top, bottom] = [100, 26, 44];
    const source = png(columns, rows, (at) => scale.level(values[at]));
    const svg = plot({
      width, height, marginLeft, marginRight: right, marginTop: top, marginBottom: bottom,
      x: { ...x }, y: { ...y, reverse: true },
      marks: [
        Plot.image([0], {
          src: () => source, x: () => (x.domain[0] + x.domain[1]) / 2, y: () => (y.domain[0] + y.domain[1]) / 2,
          width: width - marginLeft - right, height: height - top - bottom, preserveAspectRatio: "none", imageRendering: "pixelated",
        }),
        Plot.frame({ strokeOpacity: 0.4 }),
      ],
    });
    strip(svg, width - right + 18, top + 14, height - top - bottom - 14, scale, format, title);
    return svg;
  };

  // The window of time that is drawn, in picoseconds: what the reader chose (`view`), or everything.
  const windowOf = (view, endPs) => ({ from: view?.from ?? 0, to: view?.to ?? endPs });
  // Says on the picture which pixels from left to right are which time.
  const markTime = (svg, left, right, { from, to }) => {
    svg.setAttribute("data-time", [left, right, from, to].join(" "));
    return svg;
  };

  // Stacked steps over time. `series`: { name, colour, values }; `above`, if any: a line that is not stacked.
  const steps = ({ width, height, series, above, binPs, endPs, label, tick, interactive, format, view }) => {
    const { from, to } = windowOf(view, endPs);
    const [factor, unit] = timeUnit(to);
    const bins = series[0].values.length;
    const [first, last] = [Math.min(Math.floor(from / binPs), bins - 1), Math.min(Math.ceil(to / binPs), bins)];
    const shown = Array.from({ length: Math.max(last - first, 1) }, (_, at) => first + at);
    const begin = (bin) => Math.max(bin * binPs, from) / factor;
    // The last step is as wide as the others.
    const end = { bin: shown[shown.length - 1], x: Math.min((shown[shown.length - 1] + 1) * binPs, to) / factor };
    const edges = [...shown.map((bin) => ({ bin, x: begin(bin) })), end];
    const rows = series.flatMap(({ name, values }) => edges.map(({ bin, x }) => ({ name, x, value: values[bin] })));
    const named = above ? [...series, above] : series;
    const order = series.map(({ name }) => name);
    const colours = series.map(({ colour }) => colour);
    const totals = shown.map((bin) => ({
      x: begin(bin), total: above ? above.values[bin] : series.reduce((sum, { values }) => sum + values[bin], 0),
      text: [`${plain((bin * binPs) / factor)} to ${plain(Math.min((bin + 1) * binPs, endPs) / factor)} ${unit}`,
        ...named.filter(({ values }) => values[bin] > 0).map(({ name, values }) => `${name}: ${format(values[bin])}`)].join("\n"),
    }));
    const svg = plot({ marginTop: LEGEND,
      width, height, x: { label: `time (${unit})`, domain: [from / factor, to / factor] }, y: { label, tickFormat: tick, grid: true },
      color: { domain: order, range: colours },
      marks: [
        Plot.areaY(rows, Plot.stackY({ order }, { x: "x", y: "value", fill: "name", curve: "step-after" })),
        ...(above ? [Plot.lineY(edges, { x: "x", y: ({ bin }) => above.values[bin], stroke: above.colour, strokeWidth: 1.2, curve: "step-after" })] : []),
        Plot.ruleY([0]),
        ...(interactive ? [Plot.tip(totals, Plot.pointerX({ x: "x", y: "total", title: "text" }))] : []),
      ],
    });
    return markTime(legend(svg, named), 64, width - 16, { from, to });
  };

  // The series with most, and the others put together.
  const foremost = (names, rows) => {
    const sum = (values) => values.reduce((all, value) => all + value, 0);
    const ordered = names.map((name, at) => ({ name, values: rows[at].map(number) })).filter(({ values }) => sum(values) > 0);
    ordered.sort((one, other) => sum(other.values) - sum(one.values));
    const most = ordered.slice(0, ordered.length > 6 ? 5 : 6).map((series, at) => ({ ...series, colour: COLOURS[at] }));
    const rest = ordered.slice(most.length);
    if (rest.length > 0) most.push({ name: `${rest.length} others`, colour: GREY, values: rest[0].values.map((_, bin) => rest.reduce((all, { values }) => all + values[bin], 0)) });
    return most;
  };

  const measureOf = (options) => (options.measure === "messages" ? { key: "messages", tick: count, format: (value) => `${exact(Math.round(value))} messages` } : { key: "bytes", tick: bytes, format: (value) => `${exact(Math.round(value))} B` });

  const overTime = (data, options) => {
    const { over_time: over, runtime_ps } = data.replayed;
    const { key, tick, format } = measureOf(options);
    const series = foremost(over.kinds, over[key]);
    if (series.length === 0) return null;
    return steps({ ...options, height: 260, series, binPs: number(over.bin_ps), endPs: number(runtime_ps), tick, format, label: `${key} started in ${time(number(over.bin_ps))}` });
  };

  // An axis of cells for `ranks` ranks: few of them are named in the middle of their cells.
  const rankAxis = (name, ranks, few = ranks <= 32) => (few
    ? { label: name, domain: [0, ranks], ticks: Array.from({ length: ranks }, (_, rank) => rank + 0.5), tickFormat: (place) => String(Math.floor(place)) }
    : { label: name, domain: [0, ranks], tickFormat: (rank) => (!Number.isInteger(rank) ? "" : ranks < 100000 ? String(rank) : count(rank)) });

  const rankTime = (data, options) => {
    const { rank_time: cells, runtime_ps } = data.replayed;
    const perRow = cells.ranks_per_row;
    const ranks = data.head.ranks;
    const end = number(runtime_ps);
    const bin = number(cells.bin_ps);
    const rows = cells.rows;
    const all = cells.bytes.length / rows;
    // Whole steps, so that cells stay where they are.
    const chosen = windowOf(options.view, end);
    const first = Math.min(Math.floor(chosen.from / bin), all - 1);
    const last = Math.max(Math.min(Math.ceil(chosen.to / bin), all), first + 1);
    const columns = last - first;
    const values = new Float64Array(rows * columns);
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) values[row * columns + column] = number(cells.bytes[row * all + first + column]) / ranksIn(row, perRow, ranks);
    if (!options.view && !values.some((value) => value > 0)) return null;
    const window = { from: first * bin, to: last * bin };
    const [factor, unit] = timeUnit(window.to);
    // Few ranks are named one by one.
    const few = ranks <= 24;
    const height = few ? 100 + 15 * rows : Math.min(66 + 6 * rows, 420);
    const y = rankAxis("rank", rows * perRow, few);
    // Beside the picture, what each row sends in the time that is shown.
    const edge = 100;
    const sums = Array.from({ length: rows }, (_, row) => ({ row, sum: values.subarray(row * columns, (row + 1) * columns).reduce((sum, value) => sum + value, 0) }));
    const picture = heat({
      ...options, width: options.width - edge, height, columns, rows, values, format: bytes, title: perRow > 1 ? "bytes a rank" : "bytes sent",
      x: { label: `time (${unit}), in steps of ${time(bin)}`, domain: [window.from / factor, window.to / factor] }, y,
    });
    const most = sums.reduce((most, { sum }) => Math.max(most, sum), 0);
    const beside = plot({
      width: edge, height, marginLeft: 2, marginRight: 14, x: { axis: null, domain: [0, most || 1] },
      y: { axis: null, type: "band", domain: sums.map(({ row }) => row), padding: rows <= 32 ? 0.1 : 0, round: false },
      marks: [Plot.barX(sums, { x: "sum", y: "row", fill: COLOURS[0] }), Plot.ruleX([0])],
    });
    beside.append(label(0, 18, `up to ${bytes(most)}`));
    const both = compose(options.width, height, [{ picture, x: 0, y: 0 }, { picture: beside, x: options.width - edge, y: 0 }]);
    return markTime(both, 64, options.width - edge - 100, window);
  };

  // The lists of all states; what of computing is MPI_Init stands for itself.
  const withoutInit = (own) => STATES.map(({ key }) => {
    const values = own[`${key}_ps`].map(number);
    return key === "computing" ? values.map((value, at) => value - number(own.initialising_ps[at] ?? 0)) : values;
  });

  const states = (data, options) => {
    const { states, runtime_ps } = data.replayed;
    const bin = number(states.bin_ps);
    const end = number(runtime_ps);
    // How many ranks there are in a state, on average over the bin.
    const width = (at) => Math.min((at + 1) * bin, end) - at * bin;
    const lists = withoutInit(states);
    const series = STATES.map(({ name, colour }, state) => ({ name, colour, values: lists[state].map((value, at) => (width(at) > 0 ? value / width(at) : 0)) }));
    const used = series.filter(({ values }) => values.some((value) => value > 0));
    if (used.length === 0) return null;
    return steps({ ...options, height: 240, series: used, binPs: bin, endPs: end, label: "ranks", tick: (value) => (Number.isInteger(value) ? count(value) : ""), format: (value) => `${round(value)} ranks` });
  };

  const inFlight = (data, options) => {
    const { in_flight: flight, runtime_ps } = data.replayed;
    if (!flight.mean.some((value) => value > 0)) return null;
    return steps({
      ...options, height: 220, series: [{ name: "mean", colour: COLOURS[4], values: flight.mean }],
      above: { name: "most at a time", colour: COLOURS[5], dash: "", values: flight.max.map(number) }, binPs: number(flight.bin_ps), endPs: number(runtime_ps),
      label: "messages under way", tick: count, format: (value) => round(value),
    });
  };

  const ofSender = (data, options) => {
    const classes = data.replayed.in_flight.of_sender;
    if (classes.length === 0) return null;
    const rows = classes.map((row) => {
      const name = row.from === row.to ? exact(row.from) : `${exact(row.from)}\u2013${exact(row.to)}`;
      return { name, value: number(row.messages), title: `${exact(row.messages)} messages start as one of ${name} of their rank` };
    });
    return bars(rows, { ...options, height: 210, label: "messages", xLabel: "messages of the rank under way", tick: count, colour: COLOURS[4], title: "title" });
  };

  // The cells of a matrix in the order that was asked for: { rows, values, ranksPerRow }.
  const matrixValues = (data, options) => {
    const own = data.pairs.matrix;
    const collective = data.replayed?.collectives?.matrix;
    const layer = options.layer ?? "point-to-point";
    const used = [layer === "collectives" ? null : own, layer === "point-to-point" ? null : collective].filter(Boolean);
    const rows = own.rows;
    const of = (key) => {
      const values = new Float64Array(rows * rows);
      for (const matrix of used) matrix[key].forEach((value, at) => (values[matrix.cells ? matrix.cells[at] : at] += number(value)));
      return values;
    };
    const measure = options.measure ?? "bytes";
    let values = of(measure === "messages" ? "messages" : "bytes");
    if (measure === "mean size") {
      const messages = of("messages");
      values = values.map((value, at) => (messages[at] > 0 ? Math.max(value / messages[at], 0) : 0));
    }
    const order = own.orders.find(({ by }) => by === options.order)?.ranks;
    if (order) {
      const ordered = new Float64Array(rows * rows);
      for (let row = 0; row < rows; row++) for (let column = 0; column < rows; column++) ordered[row * rows + column] = values[order[row] * rows + order[column]];
      values = ordered;
    }
    return { rows, values, order, ranksPerRow: own.ranks_per_row, measure };
  };

  const matrix = (data, options) => {
    const { rows, values, measure, order } = matrixValues(data, options);
    if (rows === 0 || !values.some((value) => value > 0)) return null;
    const side = Math.min(options.width - 164, 520);
    const ranks = data.head.ranks;
    const what = order ? "place in the order" : "rank";
    return heat({
      width: side + 164, height: side + 70, columns: rows, rows, values, format: measure === "messages" ? count : bytes, title: measure,
      x: rankAxis(`receiving ${what}`, ranks), y: rankAxis(`sending ${what}`, ranks),
    });
  };

  // A few bars need no whole page.
  const barsWidth = (rows, width) => Math.min(width, 220 + 90 * rows.length);

  // Bars over classes, each with a name.
  const bars = (rows, { width, height, label, xLabel, tick, colour, title, interactive, marginBottom = rows.length > 8 ? 64 : 44, type }) => plot({
    width: barsWidth(rows, width), height, marginBottom, x: { label: xLabel, domain: rows.map((row) => row.name), tickRotate: rows.length > 8 ? -40 : 0 },
    y: { label, grid: true, tickFormat: tick, ...(type ? { type } : {}) },
    marks: [
      Plot.barY(rows, { x: "name", y: "value", fill: colour, ...(interactive ? { tip: true, title } : {}) }),
      Plot.ruleY([0]),
    ],
  });

  const upTo = (from, to, format) => (number(from) === number(to) ? format(number(from)) : `\u2264 ${format(number(to))}`);

  // Powers of two are known by their binary names.
  const binary = (value) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    const power = value < 1 ? 0 : Math.floor(Math.log2(value) / 10);
    return value === 0 ? "0" : `${count(value / 1024 ** power)} ${units[power]}`;
  };

  const sizes = (data, options) => {
    const classes = data.sizes.classes;
    if (classes.length === 0) return null;
    const name = ({ from }) => binary(number(from));
    // The least size beyond a class: what the sum of the classes up to this one lies below.
    const bound = ({ to }) => binary(number(to) + 1);
    const all = classes.reduce((sum, row) => sum + number(row.bytes), 0);
    let below = 0;
    const rows = classes.map((row) => {
      below += number(row.bytes);
      const range = number(row.from) === number(row.to) ? `${exact(row.from)} B` : `${exact(row.from)} to ${exact(row.to)} B`;
      return { name: name(row), bound: bound(row), value: number(row.messages), share: all > 0 ? below / all : 0, title: `${range}\n${exact(row.messages)} messages\n${exact(row.bytes)} B` };
    });
    const upper = bars(rows, { ...options, height: 230, label: "messages", xLabel: "least size of the class", tick: count, colour: COLOURS[0], title: "title" });
    const lower = plot({
      ...options, width: barsWidth(rows, options.width), height: 190, marginBottom: rows.length > 8 ? 64 : 44, x: { type: "band", domain: rows.map((row) => row.bound), label: "size", tickRotate: rows.length > 8 ? -40 : 0 },
      y: { label: "share of all bytes, below this size", domain: [0, 1], grid: true, tickFormat: (share) => `${Math.round(100 * share)} %` },
      marks: [
        Plot.lineY(rows, { x: "bound", y: "share", stroke: COLOURS[5], strokeWidth: 2 }),
        Plot.dot(rows, { x: "bound", y: "share", fill: COLOURS[5], r: 3, ...(options.interactive ? { tip: true, title: (row) => `below ${row.bound}: ${percent(row.share)}` } : {}) }),
        Plot.ruleY([0]),
      ],
    });
    return compose(options.width, 420, [{ picture: upper, x: 0, y: 0 }, { picture: lower, x: 0, y: 230 }]);
  };

  const distances = (data, options) => {
    const all = data.distances.reduce((sum, row) => sum + number(row.bytes), 0);
    const total = data.distances.reduce((sum, row) => sum + number(row.messages), 0);
    if (total === 0) return null;
    const rows = data.distances.map((row) => ({
      name: row.from === row.to ? exact(row.from) : `${exact(row.from)}\u2013${exact(row.to)}`,
      value: options.measure === "messages" || all === 0 ? number(row.messages) / total : number(row.bytes) / all,
      title: `${exact(row.messages)} messages\n${exact(row.bytes)} B`,
    }));
    const what = options.measure === "messages" || all === 0 ? "messages" : "bytes";
    return bars(rows, { ...options, height: 230, label: `share of ${what}`, xLabel: "distance of the ranks' numbers", tick: (share) => `${Math.round(100 * share)} %`, colour: COLOURS[2], title: "title" });
  };

  const partners = (data, options) => {
    const rows = data.pairs.partners;
    if (rows.length === 0) return null;
    const named = rows.length <= 24;
    const title = ({ partners, ranks }) => `${exact(ranks)} ranks send to ${exact(partners)} others each`;
    return plot({
      ...options, width: named ? barsWidth(rows, options.width) : options.width, height: 220, x: { label: "ranks that a rank sends to", ...(named ? { type: "band" } : {}) }, y: { label: "ranks", grid: true, tickFormat: count, ticks: Math.min(5, Math.max(...rows.map(({ ranks }) => ranks))) },
      marks: [
        named
          ? Plot.barY(rows, { x: "partners", y: "ranks", fill: COLOURS[4], ...(options.interactive ? { tip: true, title } : {}) })
          : Plot.rectY(rows, { x1: "partners", x2: ({ partners }) => partners + 1, y: "ranks", fill: COLOURS[4] }),
        Plot.ruleY([0]),
      ],
    });
  };

  const collectives = (data, options) => {
    const rows = data.collectives.operations.slice(0, 20).map((row) => ({
      ...row, name: `${row.operation}, ${exact(row.members)} members`, value: Math.max(number(row.sent_bytes), number(row.received_bytes)), calls: number(row.operations),
      title: `${row.operation} on ${exact(row.communicators)} communicators of ${exact(row.members)} members\n${exact(row.operations)} operations\ncontributed ${exact(row.sent_bytes)} B, obtained ${exact(row.received_bytes)} B`,
    }));
    if (rows.length === 0) return null;
    const moved = options.measure !== "operations" && rows.some(({ value }) => value > 0);
    const value = moved ? "value" : "calls";
    const marginLeft = 40 + 7 * Math.max(...rows.map(({ name }) => name.length));
    return plot({
      ...options, height: 70 + 24 * rows.length, marginLeft, marginRight: 70,
      x: { label: moved ? "bytes contributed or obtained, whichever is more" : "operations", grid: true, tickFormat: moved ? bytes : count, ticks: 5 }, y: { label: null, domain: rows.map(({ name }) => name) },
      marks: [
        Plot.barX(rows, { y: "name", x: value, fill: COLOURS[1], ...(options.interactive ? { tip: true, title: "title" } : {}) }),
        Plot.text(rows, { y: "name", x: value, text: (row) => (moved ? bytes(row[value]) : count(row[value])), textAnchor: "start", dx: 4 }),
        Plot.ruleX([0]),
      ],
    });
  };

  // By rank, or by value: of many ranks the least, mean and most of those that share a column of the picture.
  const byRank = (values, { width, height, label, tick, colour, order, ranks, interactive, format, perRow }) => {
    const sorted = order === "value" ? [...values].sort((one, other) => other - one) : values;
    const rows = sorted.map((value, at) => ({ x: at * perRow, value }));
    rows.push({ x: ranks, value: sorted[sorted.length - 1] });
    return plot({
      width, height, x: order === "value" ? rankAxis("ranks, those with most first", ranks, false) : rankAxis("rank", ranks),
      y: { label, grid: true, tickFormat: tick, zero: true },
      marks: [
        Plot.areaY(rows, { x: "x", y: "value", fill: colour, curve: "step-after" }),
        Plot.ruleY([0]),
        ...(interactive ? [Plot.tip(rows.slice(0, -1), Plot.pointerX({ x: (row) => row.x + perRow / 2, y: "value", title: (row) => `${order === "value" ? `place ${row.x}` : rowName(row.x / perRow, perRow, ranks)}\n${format(row.value)}` }))] : []),
      ],
    });
  };

  const volume = (key, label, colour) => (data, options) => {
    const suffix = options.measure === "messages" ? "messages" : "bytes";
    const perRow = data.ranks.ranks_per_row;
    const values = means(data.ranks[`${key}_${suffix}`], perRow, data.head.ranks);
    if (!values.some((value) => value > 0)) return null;
    const { tick, format } = measureOf(options);
    return byRank(values, { ...options, height: 190, ranks: data.head.ranks, perRow, label: `${suffix} ${label}${meanOf(perRow)}`, tick, format, colour });
  };

  const ranks = (data, options) => (data.replayed ? statesOfRanks(data.replayed.ranks, number(data.replayed.runtime_ps), data, options) : computing(data, options));

  const statesOfRanks = (own, runtime, data, options) => {
    if (!own) return null;
    const perRow = own.ranks_per_row;
    const [factor, unit] = timeUnit(runtime);
    const lists = withoutInit(own);
    const series = STATES.map((state, at) => ({ ...state, values: means(lists[at], perRow, data.head.ranks).map((value) => value / factor) })).filter(({ values }) => values.some((value) => value > 0));
    if (series.length === 0) return null;
    return stackedRanks(series, { ...options, ranks: data.head.ranks, perRow, unit });
  };

  // The states of ranks, one on top of the other.
  const stackedRanks = (series, { width, height = 260, order, ranks, perRow, unit, interactive }) => {
    const places = series[0].values.map((_, at) => at);
    if (order === "value") places.sort((one, other) => (series[0].values[other] - series[0].values[one]) || one - other);
    const rows = [];
    for (const { name, values } of series) {
      places.forEach((rank, at) => rows.push({ name, x: at * perRow, value: values[rank] }));
      rows.push({ name, x: ranks, value: values[places[places.length - 1]] });
    }
    const tips = places.map((rank, at) => ({
      x: (at + 0.5) * perRow, y: series.reduce((sum, { values }) => sum + values[rank], 0),
      text: [rowName(rank, perRow, ranks), ...series.map(({ name, values }) => `${name}: ${round(values[rank])} ${unit}`)].join("\n"),
    }));
    const svg = plot({ marginTop: LEGEND,
      width, height, x: order === "value" ? rankAxis("ranks, those that compute longest first", ranks, false) : rankAxis("rank", ranks),
      y: { label: `time (${unit})${meanOf(perRow)}`, grid: true },
      color: { domain: series.map(({ name }) => name), range: series.map(({ colour }) => colour) },
      marks: [
        Plot.areaY(rows, Plot.stackY({ order: series.map(({ name }) => name) }, { x: "x", y: "value", fill: "name", curve: "step-after" })),
        Plot.ruleY([0]),
        ...(interactive ? [Plot.tip(tips, Plot.pointerX({ x: "x", y: "y", title: "text" }))] : []),
      ],
    });
    return legend(svg, series);
  };

  // The parts of the captured run; start-up comes before it.
  const PARTS = [
    ["outside", "outside MPI", COMPUTING], ["own", "MPI's own work", COLOURS[0]], ["message", "waiting for messages", COLOURS[5]], ["send", "sending", COLOURS[3]], ["collective", "in collectives", COLOURS[1]],
    ["communicator", "making communicators", COLOURS[4]], ["window", "one-sided communication", "#7F3C8D"], ["file", "files", GREY], ["polling", "polling", "#F0E442"],
    ["unknown", "unknown", "#B0B0B0"], ["preempted", "outside without a core", "#D9D9D9"],
  ];
  const spent = (data, options) => {
    const { ranks, ranks_per_row: perRow } = data.spent;
    const used = PARTS.filter(([key]) => ranks[key]);
    if (used.length === 0) return null;
    const lists = used.map(([key]) => means(ranks[key], perRow, data.head.ranks));
    const most = lists[0].map((_, at) => lists.reduce((sum, values) => sum + values[at], 0)).reduce((most, value) => Math.max(most, value), 0);
    if (most === 0) return null;
    const [factor, unit] = timeUnit(most);
    const series = used.map(([, name, colour], at) => ({ name, colour, values: lists[at].map((value) => value / factor) }));
    return stackedRanks(series, { ...options, ranks: data.head.ranks, perRow, unit });
  };

  const functionRanks = (data, options) => {
    const { function_ranks: functions, ranks_per_row: perRow } = data.spent;
    if (functions.length === 0) return null;
    const columns = functions[0].time_ps.length;
    const values = new Float64Array(functions.length * columns);
    functions.forEach(({ time_ps: times }, row) => means(times, perRow, data.head.ranks).forEach((value, column) => (values[row * columns + column] = value)));
    const middle = functions.map((_, row) => row + 0.5);
    return heat({
      width: options.width, height: 70 + 22 * functions.length, columns, rows: functions.length, values, format: time, title: `time${meanOf(perRow)}`, marginLeft: 150,
      x: rankAxis("rank", data.head.ranks),
      y: { label: null, domain: [0, functions.length], ticks: middle, tickSize: 0, tickFormat: (at) => functions[Math.floor(at)].function.replace(/^MPI_/, "") },
    });
  };

  const computing = (data, options) => {
    const perRow = data.ranks.ranks_per_row;
    const values = means(data.ranks.computing_ps, perRow, data.head.ranks);
    const most = values.reduce((most, value) => Math.max(most, value), 0);
    if (most === 0) return null;
    const [factor, unit] = timeUnit(most);
    return byRank(values.map((value) => value / factor), { ...options, height: 220, ranks: data.head.ranks, perRow, label: `computing (${unit})${meanOf(perRow)}`, format: (value) => `${round(value)} ${unit}`, colour: COMPUTING });
  };

  const phases = (data, options) => {
    // Those with most computing come first.
    const rows = data.phases.slice(0, 20);
    if (rows.length === 0) return null;
    const panel = (title, key, format, colour, width) => plot({
      width, height: 60 + 24 * rows.length, marginLeft: key === "computing_ps" ? 120 : 12, marginRight: 60, marginBottom: 26,
      // Of zeros alone, a scale has no length, and bars would be full.
      x: { label: null, axis: null, domain: [0, rows.reduce((most, row) => Math.max(most, number(row[key])), 0) || 1] }, y: { label: null, domain: rows.map(({ name }) => name), ...(key === "computing_ps" ? { tickFormat: (name) => (name.length > 16 ? `${name.slice(0, 15)}\u2026` : name) } : { axis: null }) },
      marks: [
        Plot.barX(rows, { y: "name", x: (row) => number(row[key]), fill: colour }),
        Plot.text(rows, { y: "name", x: (row) => number(row[key]), text: (row) => format(number(row[key])), textAnchor: "start", dx: 4 }),
        Plot.text([title], { frameAnchor: "top-left", dy: -16, fontWeight: "bold" }),
      ],
    });
    const rest = (options.width - 108) / 4;
    const parts = [["computing", "computing_ps", time, COMPUTING, rest + 108], ["messages", "messages", count, COLOURS[0], rest], ["bytes", "bytes", bytes, COLOURS[4], rest], ["collective parts", "collectives", count, COLOURS[1], rest]];
    let x = 0;
    return compose(options.width, 60 + 24 * rows.length, parts.map(([title, key, format, colour, width]) => {
      const place = { picture: panel(title, key, format, colour, width), x, y: 0 };
      x += width;
      return place;
    }));
  };

  // The sizes of messages of each phase: small pictures beside each other, with one axis of sizes.
  const phaseSizes = (data, options) => {
    const sent = data.phases.filter(({ messages }) => number(messages) > 0).sort((one, other) => number(other.messages) - number(one.messages)).slice(0, 8);
    if (sent.length === 0) return null;
    const classes = [...new Set(sent.flatMap(({ sizes }) => sizes.map(({ from }) => number(from))))].sort((one, other) => one - other);
    const columns = Math.min(sent.length, options.width >= 640 ? 4 : 2);
    const [width, height] = [Math.floor(options.width / columns), 170];
    const parts = sent.map(({ name, sizes }, at) => {
      const rows = sizes.map((row) => ({ name: binary(number(row.from)), value: number(row.messages), title: `${name}\n${exact(row.from)} to ${exact(row.to)} B\n${exact(row.messages)} messages\n${exact(row.bytes)} B` }));
      const every = Math.ceil(classes.length / Math.max(2, Math.floor((width - 60) / 48)));
      const picture = plot({
        width, height, marginLeft: 46, marginRight: 24, marginTop: 34, marginBottom: 26,
        x: { type: "band", label: null, domain: classes.map(binary), ticks: classes.map(binary).filter((_, at) => at % every === 0) }, y: { label: null, grid: true, tickFormat: count, ticks: 3 },
        marks: [
          Plot.barY(rows, { x: "name", y: "value", fill: COLOURS[0], ...(options.interactive ? { tip: true, title: "title" } : {}) }), Plot.ruleY([0]),
          Plot.text([name.length > 24 ? `${name.slice(0, 23)}\u2026` : name], { frameAnchor: "top-left", dx: -40, dy: -28, fontWeight: "bold" }),
        ],
      });
      return { picture, x: (at % columns) * width, y: Math.floor(at / columns) * height };
    });
    return compose(options.width, Math.ceil(sent.length / columns) * height, parts);
  };

  // The simulation's latencies: the median of each class of sizes, and a band around it.
  const simLatency = (data, options) => {
    const classes = data.simulated.result.sizes.filter((row) => number(row.messages) > 0);
    if (classes.length < 2) return null;
    // Messages without bytes have a place of their own to the left of the others, as the logarithm of 0 has none.
    const froms = classes.map((row) => number(row.from_bytes));
    const [empty, most] = [Math.min(...froms.filter((from) => from > 0)) / 4, Math.max(...froms)];
    const decades = Array.from({ length: 20 }, (_, power) => 10 ** power).filter((tick) => tick >= 4 * empty && tick <= most);
    const ticks = froms.includes(0) ? [empty, ...decades.filter((_, at) => at % Math.ceil(decades.length / 6) === 0)] : 6;
    const rows = classes.map((row) => ({
      x: number(row.from_bytes) || empty, min: Math.max(row.min_ps, 1), p50: Math.max(row.p50_ps, 1), p99: Math.max(row.p99_ps, 1),
      title: `${exact(row.from_bytes)} to ${exact(row.to_bytes)} B\n${exact(row.messages)} messages\nleast ${time(row.min_ps)}\nmedian ${time(row.p50_ps)}\n99 % ${time(row.p99_ps)}`,
    }));
    const svg = plot({ marginTop: LEGEND,
      ...options, height: 260, x: { type: "log", label: "bytes of a message", tickFormat: (tick) => (tick === empty ? "0 B" : bytes(tick)), ticks }, y: { type: "log", label: "time on the network", tickFormat: time, grid: true, ticks: 5 }, marginLeft: 76,
      marks: [
        Plot.areaY(rows, { x: "x", y1: "min", y2: "p99", fill: COLOURS[4], fillOpacity: 0.4 }),
        Plot.lineY(rows, { x: "x", y: "p50", stroke: "currentColor", strokeWidth: 2 }),
        Plot.dot(rows, { x: "x", y: "p50", fill: "currentColor", r: 3, ...(options.interactive ? { tip: true, title: "title" } : {}) }),
      ],
    });
    return legend(svg, [{ name: "median", colour: "currentColor", dash: "" }, { name: "least to 99 %", colour: COLOURS[4] }]);
  };

  // The links that the result of a simulation lists, the busiest first.
  const linksOf = ({ simulated: { result: { links } } }) => links.all ?? links.busiest;

  const simLinks = (data, options) => {
    const [links, shares] = [linksOf(data), data.simulated.utilisations];
    if (shares.length === 0) return null;
    const used = data.simulated.result.links.used;
    if (shares.length <= 12) {
      const rows = links.map(({ link, utilisation, bytes: carried }) => ({ link, utilisation, title: `${link}\n${percent(utilisation)}\n${exact(carried)} B` }));
      const marginLeft = 24 + 7 * Math.max(...rows.map(({ link }) => link.length));
      return plot({
        ...options, height: 60 + 22 * rows.length, marginLeft, marginRight: 60, x: { label: "share of the run time that the link was busy", tickFormat: (share) => `${round(100 * share)} %`, grid: true, ticks: 5 }, y: { label: null, domain: rows.map(({ link }) => link) },
        marks: [Plot.barX(rows, { y: "link", x: "utilisation", fill: COLOURS[0], ...(options.interactive ? { tip: true, title: "title" } : {}) }), Plot.ruleX([0])],
      });
    }
    const rows = shares.map((utilisation, place) => ({ place, utilisation, title: `${links[place]?.link ?? `place ${place}`}\n${percent(utilisation)}` }));
    rows.push({ ...rows[rows.length - 1], place: rows.length });
    return plot({
      ...options, height: 220, x: { label: used > shares.length ? `the ${exact(shares.length)} busiest of ${exact(used)} links that carried messages` : "links that carried messages, the busiest first", domain: [0, shares.length] }, y: { label: "share of the run time busy", tickFormat: (share) => `${round(100 * share)} %`, grid: true },
      marks: [
        Plot.areaY(rows, { x: "place", y: "utilisation", fill: COLOURS[0], curve: "step-after" }), Plot.ruleY([0]),
        ...(options.interactive && rows.length < 5000 ? [Plot.tip(rows, Plot.pointerX({ x: "place", y: "utilisation", title: "title" }))] : []),
      ],
    });
  };

  const simLinkTime = (data, options) => {
    const links = linksOf(data).filter(({ busy }) => busy);
    if (links.length === 0) return null;
    const bin = data.simulated.result.links.bin_ps;
    const columns = Math.max(...links.map(({ busy }) => busy.length));
    const values = new Float64Array(links.length * columns);
    links.forEach(({ busy }, row) => busy.forEach((share, column) => (values[row * columns + column] = share)));
    const [factor, unit] = timeUnit(columns * bin);
    const named = links.length <= 24;
    const shown = (place) => (Number.isInteger(place) ? String(place) : "");
    return heat({
      ...options, height: Math.min(Math.max(150, 66 + 16 * links.length), 460), columns, rows: links.length, values, format: percent, title: "busy", linear: true,
      marginLeft: named ? 24 + 7 * Math.max(...links.map(({ link }) => link.length)) : 64,
      x: { label: `time (${unit})`, domain: [0, (columns * bin) / factor] },
      y: named
        ? { label: null, domain: [0, links.length], ticks: links.map((_, at) => at + 0.5), tickFormat: (place) => links[Math.floor(place)]?.link ?? "" }
        : { label: "links, the busiest first", domain: [0, links.length], tickFormat: shown },
    });
  };

  // The simulated network, as its topology says where its parts are: the colour of a cable is the share of the run time in which its
  // busier direction was busy, that of a switch the one of its nodes' links where nodes are not drawn.
  const simTopology = (data, options) => {
    const { vertices, cables, straight } = data.simulated.result.network.drawing ?? { cables: [] };
    if (cables.length === 0) return null;
    const bounds = (key) => vertices.reduce(([least, most], vertex) => [Math.min(least, vertex[key]), Math.max(most, vertex[key])], [Infinity, -Infinity]);
    const [[left, right], [top, bottom]] = [bounds("x"), bounds("y")];
    const [margin, legendWidth] = [24, 100];
    const room = options.width - legendWidth - 2 * margin;
    const scale = Math.min(room / Math.max(right - left, 1), 2);
    const places = vertices.map(({ x, y }) => [margin + (x - left) * scale, margin + 10 + (y - top) * scale]);
    const height = Math.max((bottom - top) * scale + 2 * margin + 20, 130);
    const svg = compose(options.width, height, []);
    const most = [...cables, ...vertices].reduce((most, { utilisation }) => Math.max(most, utilisation ?? 0), 0);
    const colour = (utilisation) => (most > 0 ? `rgb(${viridis(utilisation / most).join(",")})` : GREY);
    const titled = (name, attributes, text) => svg.append(element(name, attributes, element("title", {}, text)));
    const lengths = cables.map(({ ends: [from, to] }) => Math.hypot(places[from][0] - places[to][0], places[from][1] - places[to][1]));
    const shortest = lengths.reduce((least, length) => Math.min(least, length), Infinity);
    const order = cables.map((_, at) => at).sort((one, other) => cables[one].utilisation - cables[other].utilisation);
    for (const at of order) {
      const { ends: [from, to], links, utilisation } = cables[at];
      const [[x1, y1], [x2, y2]] = [places[from], places[to]];
      // Long cables are arcs, clear of the vertices between their ends.
      const bow = !straight && lengths[at] > 1.5 * shortest ? 0.12 : 0;
      const [cx, cy] = [(x1 + x2) / 2 - bow * (y2 - y1), (y1 + y2) / 2 + bow * (x2 - x1)];
      const width = cables.length > 600 ? 1 : links > 2 ? 3.5 : 2.5;
      titled("path", { d: `M${round(x1)} ${round(y1)}Q${round(cx)} ${round(cy)} ${round(x2)} ${round(y2)}`, fill: "none", stroke: colour(utilisation), "stroke-width": width },
        `${vertices[from].name} \u2013 ${vertices[to].name}: ${percent(utilisation)}`);
    }
    const radius = vertices.length > 300 ? 1.5 : 4;
    vertices.forEach(({ name, is_node, utilisation }, at) => {
      const [x, y] = places[at].map(round);
      const side = 2 * radius;
      if (is_node) titled("circle", { cx: x, cy: y, r: 0.75 * radius, fill: "currentColor" }, name);
      else titled("rect", { x: x - radius, y: y - radius, width: side, height: side, stroke: "currentColor", fill: utilisation === undefined ? "var(--ground, white)" : colour(utilisation) },
        utilisation === undefined ? name : `${name}, its nodes: ${percent(utilisation)}`);
    });
    // Beside the lines that lead straight down, where there is room for all names.
    const inRow = new Map();
    vertices.forEach(({ name, y }) => inRow.set(y, (inRow.get(y) ?? 0) + 6 * name.length + 14));
    const apart = shortest > 9 + 6 * Math.max(...vertices.map(({ name }) => name.length));
    if (vertices.length <= 40 && Math.max(...inRow.values()) <= room && (straight || apart)) {
      vertices.forEach(({ name }, at) => svg.append(element("text", { x: places[at][0] + 6, y: places[at][1] + 15, "font-size": 10, "paint-order": "stroke", stroke: "var(--ground, white)", "stroke-width": 4 }, name)));
    }
    strip(svg, options.width - 92, 40, Math.min(120, height - 70), { least: 0, most, linear: true }, percent, "busy");
    return svg;
  };

  const simRanks = (data, options) => statesOfRanks(data.simulated.ranks, data.simulated.result.runtime_ps, data, options);

  const againstSizes = (data, options) => {
    const low = (row) => number(row.from);
    const classes = new Map();
    for (const row of data.sizes.classes) classes.set(low(row), { from: row.from, own: number(row.messages), other: 0 });
    for (const row of data.against.sizes) classes.set(low(row), { from: row.from, own: 0, ...classes.get(low(row)), other: number(row.messages) });
    const rows = [...classes.values()].sort((one, other) => number(one.from) - number(other.from)).map((row) => ({
      ...row, name: binary(number(row.from)), title: `from ${exact(row.from)} B\nthis: ${exact(row.own)} messages\nthe other: ${exact(row.other)} messages`,
    }));
    if (rows.length === 0) return null;
    const svg = plot({ marginTop: LEGEND,
      ...options, width: barsWidth(rows, options.width), height: 250, marginBottom: rows.length > 8 ? 64 : 44, x: { label: "least size of the class", domain: rows.map(({ name }) => name), tickRotate: rows.length > 8 ? -40 : 0 }, y: { label: "messages", grid: true, tickFormat: count },
      marks: [
        Plot.barY(rows, { x: "name", y: "own", fill: COLOURS[0], ...(options.interactive ? { tip: true, title: "title" } : {}) }),
        Plot.tickY(rows, { x: "name", y: "other", stroke: COLOURS[5], strokeWidth: 3 }),
        Plot.ruleY([0]),
      ],
    });
    return legend(svg, [{ name: "this", colour: COLOURS[0] }, { name: "the other", colour: COLOURS[5], dash: "" }]);
  };

  // Every figure: how it is drawn, and by what a reader can choose; `time`: whether its axis is the replay's time.
  const all = {
    "over-time": { draw: overTime, needs: "replayed", time: true, choices: { measure: ["bytes", "messages"] } },
    "rank-time": { draw: rankTime, needs: "replayed", time: true },
    "states": { draw: states, needs: "replayed", time: true },
    "matrix": { draw: matrix, values: matrixValues, choices: { measure: ["bytes", "messages", "mean size"] } },
    "sent": { draw: volume("sent", "sent", COLOURS[0]), choices: { measure: ["bytes", "messages"], order: ["rank", "value"] } },
    "received": { draw: volume("received", "received", COLOURS[4]), choices: { measure: ["bytes", "messages"], order: ["rank", "value"] } },
    "partners": { draw: partners },
    "distances": { draw: distances, choices: { measure: ["bytes", "messages"] } },
    "sizes": { draw: sizes },
    "collectives": { draw: collectives, choices: { measure: ["bytes", "operations"] } },
    "ranks": { draw: ranks, choices: { order: ["rank", "value"] } },
    "spent": { draw: spent, needs: "spent", choices: { order: ["rank", "value"] } },
    "function-ranks": { draw: functionRanks, needs: "spent" },
    "in-flight": { draw: inFlight, needs: "replayed", time: true },
    "of-sender": { draw: ofSender, needs: "replayed" },
    "phases": { draw: phases },
    "phase-sizes": { draw: phaseSizes },
    "sim-latency": { draw: simLatency, needs: "simulated" },
    "sim-topology": { draw: simTopology, needs: "simulated" },
    "sim-links": { draw: simLinks, needs: "simulated" },
    "sim-link-time": { draw: simLinkTime, needs: "simulated" },
    "sim-ranks": { draw: simRanks, needs: "simulated", choices: { order: ["rank", "value"] } },
    "against-sizes": { draw: againstSizes, needs: "against" },
  };

  const draw = (name, data, options) => {
    const { draw, needs } = all[name];
    return needs && !data[needs] ? null : draw(data, options);
  };
  return { all, draw, element, timeUnit, exact, count, bytes, time };
})();
