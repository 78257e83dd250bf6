import { Database } from "bun:sqlite";
import { sqliteStore } from "phoneproof/sqlite";
import { storeContract } from "phoneproof/testing";

// Runs the cases of the store contract on two handles of `bun:sqlite` and on a file that the store opens, and prints
// those that fail. Argument: a folder.
const folder = process.argv[2];
const [one, two] = [1, 2].map(() => new Database(`${folder}/handles.db`));
const subjects = [
  { store: sqliteStore({ database: one }), peer: sqliteStore({ database: two }) },
  { store: sqliteStore({ file: `${folder}/file.db` }), peer: sqliteStore({ file: `${folder}/file.db` }) },
];
const cases = storeContract({ racers: 50 });
const broken = [];
for (const subject of subjects) for (const { name, run } of cases) await run(subject).catch((error) => broken.push(`${name}: ${error.message}`));
console.log(JSON.stringify({ cases: cases.length, broken }));
