/* Draws panels into the page that bench/dashboard.ts opens: `{ title, unit, stacked, series: [{ label, values: [[seconds, value]] }] }`. */
globalThis.draw = (panels) => {
  const start = Math.min(...panels.flatMap(({ series }) => series.flatMap(({ values }) => values.map(([time]) => time))));
  for (const { title, unit, stacked, series } of panels) {
    const section = document.body.appendChild(document.createElement("section"));
    section.appendChild(document.createElement("h2")).textContent = `${title} (${unit})`;
    const box = section.appendChild(document.createElement("div"));
    box.style.height = "265px";
    const datasets = series.map(({ label, values }) => ({
      label,
      data: values.map(([time, value]) => ({ x: time - start, y: Number(value) })),
      pointRadius: 0,
      borderWidth: 1.5,
      fill: stacked,
    }));
    const legend = { position: "bottom", labels: { boxWidth: 8, font: { size: 10 } } };
    const scales = { x: { type: "linear" }, y: { stacked, beginAtZero: true } };
    const options = { animation: false, maintainAspectRatio: false, scales, plugins: { legend } };
    new globalThis.Chart(box.appendChild(document.createElement("canvas")), { type: "line", data: { datasets }, options });
  }
};
