import smoke from "../smoke.cjs";

await smoke((name) => import(name));
for (const name of process.argv.slice(2)) await import(name);
