"use strict";
(() => {
  const { data, figures } = JSON.parse(document.getElementById("content").textContent);

  // ---- figures: colours come from the style sheet, so that light, dark and print need no second drawing ----------
  const ink = "var(--ink)", soft = "var(--soft)", line = "var(--line)";
  const series = Array.from({ length: 8 }, (_, k) => `var(--c${k})`);
  const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

  function config(width, canvas) {
    const text = canvas ? "#808080" : soft; // a canvas knows no variables; this grey reads on both grounds
    return {
      font,
      background: null,
      view: { stroke: null },
      axis: {
        labelColor: text, titleColor: text, gridColor: line, domainColor: line, tickColor: line,
        labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500, titlePadding: 8, labelPadding: 5,
        labelLimit: Math.max(80, Math.min(220, width * 0.33)), labelOverlap: true, tickCount: width < 480 ? 5 : 8,
      },
      legend: {
        labelColor: ink, titleColor: text, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500,
        orient: "top", columns: width < 480 ? 1 : width < 800 ? 2 : 3, labelLimit: Math.min(320, width * 0.8), symbolSize: 80, symbolOpacity: 1,
      },
      range: { category: series },
      mark: { color: series[0] },
      text: { color: ink },
    };
  }

  function records({ columns, rows }) {
    return rows.map((row) => Object.fromEntries(row.map((value, k) => [columns[k], value])));
  }

  /** A matrix (a row each: its name, a number, then a column for each thing) as one record for each cell. */
  function cells({ columns, rows }) {
    return rows.flatMap((row, r) =>
      row.slice(2).map((value, k) => ({ row: r, name: row[0], number: row[1], place: k, column: columns[k + 2], value })));
  }

  async function draw(place) {
    const { spec, data: name, canvas } = figures[place.dataset.figure];
    const values = spec.usermeta?.matrix ? cells(data[name]) : records(data[name]);
    try {
      await vegaEmbed(place, { ...spec, description: place.dataset.alt, data: { values } }, {
        actions: false, logLevel: vega.Error, ast: true, defaultStyle: false, renderer: canvas ? "canvas" : "svg",
        config: config(place.clientWidth, canvas),
        tooltip: { disableDefaultStyle: true, theme: "custom" },
      });
      place.dataset.drawn = "yes";
    } catch (error) {
      place.classList.add("failed");
      place.textContent = `This figure could not be drawn (${error.message}); its numbers are in the CSV.`;
      console.error(error);
    }
  }

  const places = [...document.querySelectorAll("[data-figure]")];
  const drawAll = () => Promise.all(places.map(draw));
  let width = document.body.clientWidth, waiting = 0;
  addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });
  drawAll().then(() => { document.body.dataset.ready = "yes"; });

  // ---- tables ----------------------------------------------------------------------------------------------------
  function sort(table, column, head) {
    const descending = head.getAttribute("aria-sort") === "ascending"
      || (!head.hasAttribute("aria-sort") && head.classList.contains("number"));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const numeric = head.classList.contains("number");
    const key = (row) => {
      const cell = row.cells[column];
      return numeric ? (cell.dataset.value === "" ? NaN : Number(cell.dataset.value)) : cell.textContent;
    };
    const compare = numeric
      ? (a, b) => (isNaN(a) || isNaN(b) ? isNaN(a) - isNaN(b) : descending ? b - a : a - b)
      : (a, b) => (descending ? -1 : 1) * a.localeCompare(b, undefined, { numeric: true });
    const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
    rows.sort((a, b) => compare(a[0], b[0]));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  for (const sheet of document.querySelectorAll(".sheet")) {
    const table = sheet.querySelector("table");
    [...table.tHead.rows[0].cells].forEach((head, column) =>
      head.firstChild.addEventListener("click", () => sort(table, column, head)));
    sheet.querySelector("input")?.addEventListener("input", (event) => {
      const wanted = event.target.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      const total = table.tBodies[0].rows.length;
      sheet.querySelector(".count").textContent = shown === total ? "" : `${shown} of ${total} rows`;
    });
  }

  // ---- CSV -------------------------------------------------------------------------------------------------------
  function cell(value) {
    const text = value === null ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  for (const button of document.querySelectorAll("[data-csv]")) {
    button.addEventListener("click", () => {
      const { columns, rows } = data[button.dataset.csv];
      const text = [columns, ...rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
      link.download = `${button.dataset.csv}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  // ---- light and dark --------------------------------------------------------------------------------------------
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement, own = root.style.colorScheme;
    const dark = own ? own === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.style.colorScheme = dark ? "light" : "dark";
  });
})();
