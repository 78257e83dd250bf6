/**
 * Draws the report: each policy's table, and each scenario over time. A plain script: `Chart` is the library above it.
 */
const tables = JSON.parse(document.getElementById("tables").textContent);
const main = document.querySelector("main");
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
Chart.defaults.font.family = "system-ui, sans-serif";
Chart.defaults.color = dark ? "#98a4b3" : "#5c6877";
Chart.defaults.borderColor = dark ? "#2c3540" : "#e6eaef";
Chart.defaults.animation = false;

const palette = ["#d1495b", "#edae49", "#7d5ba6", "#00798c", "#8d6a3f", "#e377a2", "#5b8e4a", "#3066be", "#b56b45", "#6c757d"];
const ruleColours = new Map();
const colourOf = (rule) => {
  if (!ruleColours.has(rule)) ruleColours.set(rule, palette[ruleColours.size % palette.length]);
  return ruleColours.get(rule);
};
const sentColour = dark ? "#6db3f2" : "#2371c4";
const verifiedColour = dark ? "#58c98b" : "#1d8a4e";

const columns = [
  ["scenario", "Scenario"],
  ["out", "Attack out"],
  ["cost", "Cost, $"],
  ["visits", "Honest visits"],
  ["rejected", "Rejected"],
  ["target", "In the country"],
  ["hold", "Held in"],
  ["recover", "Recovered in"],
  ["goal", "Goal"],
  ["by", "Rejected by"],
];
const wordy = new Set(["goal", "by"]);

function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function tableOf(stories, anchor) {
  const head = element(
    "tr",
    {},
    columns.map(([key, title]) => element("th", { textContent: title, className: wordy.has(key) ? "words" : "" })),
  );
  const rows = stories.map(({ row }, index) => {
    const cells = columns.map(([key]) => {
      const className = [wordy.has(key) && "words", key === "by" && "by", key === "goal" && row.reached !== undefined && (row.reached ? "good" : "bad")]
        .filter(Boolean)
        .join(" ");
      const text = key === "goal" && row.reached ? `${row[key]} ✓` : (row[key] ?? "");
      return element("td", { className }, [key === "scenario" ? element("a", { href: `#${anchor}-${index}`, textContent: text }) : text]);
    });
    return element("tr", {}, cells);
  });
  return element("div", { className: "wide" }, [element("table", {}, [element("thead", {}, [head]), element("tbody", {}, rows)])]);
}

/** The time of the attack or strain, shaded. */
const span = {
  id: "span",
  beforeDatasetsDraw({ ctx, chartArea, scales }, _, { from, until }) {
    const [left, right] = [from, Math.max(until, from)].map((at) => Math.min(chartArea.right, Math.max(chartArea.left, scales.x.getPixelForValue(at))));
    ctx.save();
    ctx.fillStyle = dark ? "rgba(255, 255, 255, 0.05)" : "rgba(20, 40, 70, 0.05)";
    ctx.fillRect(left, chartArea.top, Math.max(1, right - left), chartArea.height);
    ctx.restore();
  },
};

const hour = 3_600_000;

/** Hours since the attack or strain began. */
function hoursOf({ start, step, from }, index) {
  return (start + index * step - from) / hour;
}

function chart(canvas, series, datasets, money = false) {
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: money ? 2 : 0 });
  new Chart(canvas, {
    type: "line",
    data: { datasets },
    plugins: [span],
    options: {
      responsive: true,
      maintainAspectRatio: false,
      parsing: false,
      normalized: true,
      interaction: { mode: "index", intersect: false },
      elements: { point: { radius: 0, hitRadius: 6 }, line: { borderWidth: 1.6 } },
      scales: {
        x: {
          type: "linear",
          title: { display: true, text: "hours since it began" },
          min: hoursOf(series, 0),
          max: hoursOf(series, series.honest.came.length),
          ticks: { stepSize: 6, maxTicksLimit: 12 },
        },
        y: { beginAtZero: true, stacked: true, ticks: { precision: 0, callback: (value) => (money ? `$${whole.format(value)}` : whole.format(value)) } },
      },
      plugins: {
        span: { from: 0, until: (series.until - series.from) / hour },
        legend: { position: "bottom", labels: { boxWidth: 10, boxHeight: 10, filter: ({ text }) => text !== "" } },
        tooltip: {
          filter: ({ parsed, dataset }) => parsed.y !== 0 || dataset.stack !== "refused",
          callbacks: {
            title: ([first]) => `${first.parsed.x.toFixed(2)} h`,
            label: ({ parsed, dataset }) => ` ${dataset.label}: ${money ? "$" : ""}${whole.format(parsed.y)}`,
          },
        },
      },
    },
  });
}

const points = (series, values) => values.map((y, index) => ({ x: hoursOf(series, index + 0.5), y }));
const line = (series, label, values, colour, more = {}) => ({
  label,
  data: points(series, values),
  borderColor: colour,
  backgroundColor: colour,
  stack: label,
  fill: false,
  ...more,
});

/** Sent, verified, and rejected by each rule, stacked. */
function messages(series, party, names) {
  const refused = Object.entries(party.refusedBy)
    .map(([rule, values]) => [rule, values, values.reduce((sum, value) => sum + value, 0)])
    .sort((a, b) => b[2] - a[2])
    .map(([rule, values], index) =>
      line(series, `rejected: ${rule}`, values, colourOf(rule), {
        stack: "refused",
        fill: index === 0 ? "origin" : "-1",
        backgroundColor: `${colourOf(rule)}aa`,
        borderWidth: 0.8,
        stepped: "middle",
      }),
    );
  return [...refused, line(series, names.sent, party.sent, sentColour), line(series, names.verified, party.verified, verifiedColour)];
}

function money({ honest, attack, ...series }) {
  const total = ({ cost }) => {
    let sum = 0;
    return cost.map((value) => (sum += value));
  };
  const lines = [line(series, "honest", total(honest), verifiedColour)];
  return attack === undefined ? lines : [...lines, line(series, "attack", total(attack), "#d1495b")];
}

function storyOf({ about, row, result }, id) {
  const { series } = result;
  const figures = [
    [
      "Honest people: sent, verified, visits rejected",
      (canvas) => chart(canvas, series, messages(series, series.honest, { sent: "sent", verified: "verified" })),
    ],
    ...(series.attack === undefined
      ? []
      : [
          [
            "The attack: out, codes entered, requests rejected",
            (canvas) => chart(canvas, series, messages(series, series.attack, { sent: "out", verified: "entered" })),
          ],
        ]),
    ["Money, summed up", (canvas) => chart(canvas, series, money(series), true)],
  ];
  const goal = element("span", { className: row.reached === undefined ? "" : row.reached ? "good" : "bad", textContent: row.goal });
  const boxes = figures.map(([caption]) => {
    const canvas = element("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${row.scenario}: ${caption}`);
    return element("figure", {}, [element("figcaption", { textContent: caption }), element("div", { className: "canvas" }, [canvas])]);
  });
  const section = element("section", { id }, [
    element("h3", { textContent: `${result.scenario} (${row.scenario})` }),
    element("p", {}, [`${about} `, goal]),
    element("div", { className: "charts" }, boxes),
  ]);
  drawWhenSeen(section, () => {
    for (const [index, [, draw]] of figures.entries()) draw(boxes[index].querySelector("canvas"));
  });
  return section;
}

const drawings = new Map();
const eye = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      eye.unobserve(target);
      drawings.get(target)();
    }
  },
  { rootMargin: "600px" },
);

function drawWhenSeen(section, draw) {
  drawings.set(section, draw);
  eye.observe(section);
}

for (const [place, { title, stories }] of tables.entries()) {
  const anchor = `t${place}`;
  main.append(
    element("h2", { textContent: title[0].toUpperCase() + title.slice(1) }),
    tableOf(stories, anchor),
    ...stories.map((story, index) => storyOf(story, `${anchor}-${index}`)),
  );
}
