import { frameworks } from "./apps.js";
import { compare } from "./pairs.js";
import { number, type Part, type Row } from "./report.js";

/** Most that create and check may cost, as a multiple of two bare routes. */
const targets: Readonly<Record<string, number>> = { "Fastify 5": 2.5, "Express 5": 1.3, "Express 4": 1.3 };

/** Server CPU of create + check on the memory store against two bare JSON routes of the same framework. */
export const frameworksPart: Part = {
  name: "frameworks",
  title: "Server CPU of one create + check, memory store, against two bare JSON routes (Express: with express.json()); medians of interleaved rounds",
  async measure() {
    const rows: Row[] = [];
    for (const framework of Object.keys(frameworks)) {
      const { bare, mounted, ratios } = await compare({ framework, store: "memory:", rounds: 9, pairs: 1000, connections: 16 });
      const ratio = mounted.cpu / bare.cpu;
      const target = targets[framework];
      rows.push({
        figure: framework,
        measured: `${ratio.toFixed(2)} × (${number(mounted.cpu)} µs against ${number(bare.cpu)} µs; rounds ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
        ...(target !== undefined && { target: `≤ ${target} ×`, reached: ratio <= target }),
      });
    }
    rows.push({
      figure: "Next.js",
      measured: "not measured: needs a built app; nextHandlers is fetchHandler, and a bare Next route costs about 30 bare node:http ones",
    });
    return rows;
  },
};
