import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type MongoServer, mongoServer } from "../support/mongo.js";
import { newDatabase, type PostgresServer, postgresServer } from "../support/postgres.js";
import { type RedisServer, redisIsInstalled, startRedis } from "../support/redis.js";
import { environmentFor, namesIn } from "./environment.js";
import { isProgram, readPages } from "./pages.js";
import { layOut } from "./project.js";
import { atATime, type Ended, start } from "./run.js";

const pages = readPages();
const programs = pages.flatMap(({ path, blocks }) => blocks.filter(isProgram).map((block) => ({ page: path, ...block, at: `${path}:${block.line}` })));
const project = layOut(pages, "phoneproof-docs");
const shared = pages.flatMap(({ blocks }) => blocks.map(({ text }) => text));
/** Servers and files for import keep running. Everything else is a program that a reader starts and that must end. */
const runsOn = (text: string) => /^export |\bexports\.|\b(listen|serve)\(/m.test(text);
const needs = (name: string) => programs.some(({ text }) => namesIn(text).includes(name));

let redis: RedisServer | undefined;
let mongo: MongoServer | undefined;
let postgres: PostgresServer | undefined;
let postgresUrl: string | undefined;
let complaints = "";

beforeAll(async () => {
  if (needs("REDIS_URL") && redisIsInstalled("the snippets of the documents that use Redis")) redis = await startRedis();
  if (needs("MONGODB_URL")) mongo = await mongoServer("the snippets of the documents that use MongoDB");
  if (needs("POSTGRES_URL")) postgres = await postgresServer("the snippets of the documents that use PostgreSQL");
  if (postgres !== undefined) postgresUrl = await newDatabase(postgres);
  complaints = await project.compile();
});
afterAll(async () => {
  await redis?.stop();
  await mongo?.stop();
  await postgres?.stop();
  project.remove();
});

describe("the programs of the documents", () => {
  it("each names its file, once on its page", () => {
    expect(programs.filter(({ name }) => name === undefined).map(({ at }) => at)).toEqual([]);
    const names = programs.map(({ page, name }) => `${page} ${name}`);
    expect(names.filter((one, index) => names.indexOf(one) !== index)).toEqual([]);
    expect(programs.length).toBeGreaterThan(20);
  });

  it.each(["README.md", "docs/install.md", "docs/first-form.md"])("%s explains how to make a .ts file an ES module and run it", (page) => {
    const { text } = pages.find(({ path }) => path === page) ?? { text: "" };
    for (const words of ["npm pkg set type=module", "--save-dev tsx", "npx tsx "]) expect(text).toContain(words);
  });

  it("no secret or API key has a default value", () => {
    expect(programs.filter(({ text }) => /process\.env\.\w*(SECRET|KEY|TOKEN|PASSWORD)\w* \?\?|pp_[A-Za-z0-9_]{20}/.test(text)).map(({ at }) => at)).toEqual(
      [],
    );
  });

  it("none both reads and deletes: a reader who only wants to look must not lose data", () => {
    const reads = /\.(history|refusals|explain|stats|verifications\.get)\(/;
    const deletes = /\.(erase|unlock|verifications\.cancel)\(/;
    expect(programs.filter(({ text }) => reads.test(text) && deletes.test(text)).map(({ at }) => at)).toEqual([]);
  });

  it("those for operators pass the customer_uuid that a verifier with customers needs", () => {
    const calls = /verifier\.(history|refusals|explain|stats|erase|unlock|lookup|verifications\.\w+)\(/;
    const programsOf = programs.filter(({ text }) => calls.test(text) && !runsOn(text));
    expect(programsOf.length).toBeGreaterThan(5);
    expect(
      programsOf
        .filter(({ text }) => !text.includes("customer_uuid: process.env.CUSTOMER_UUID") && !text.includes("const customer_uuid = process.env.CUSTOMER_UUID"))
        .map(({ at }) => at),
    ).toEqual([]);
  });

  it("all compile, strictly, against the built package", () => expect(complaints).toBe(""));
});

describe("each program runs in a separate process, until it listens or ends by itself", () => {
  const running = new Map<string, Promise<Ended>>();
  const inTurn = atATime(2);
  const run = programs.filter(({ notRun }) => notRun === undefined);

  beforeAll(() => {
    const servers = { ...(redis && { REDIS_URL: redis.url }), ...(mongo && { MONGODB_URL: mongo.url }), ...(postgresUrl && { POSTGRES_URL: postgresUrl }) };
    const environment = environmentFor(shared, servers);
    for (const { page, name = "", at, text } of run) {
      const missing = namesIn(text).some((variable) => environment[variable] === undefined && /^(REDIS|MONGODB|POSTGRES)_URL$/.test(variable));
      if (!missing)
        running.set(
          at,
          inTurn(async () => {
            const one = await start(project.fileOf(page, name), environment);
            return runsOn(text) ? one.end() : one.ended;
          }),
        );
    }
  });
  afterAll(() => {
    const skipped = programs.filter(({ notRun }) => notRun !== undefined);
    console.log(`documents: ${running.size} snippets run, ${skipped.length} not run${skipped.map(({ at, notRun }) => `\n  ${at}: ${notRun}`).join("")}`);
  });

  it.each(run)("$page $name", async ({ at }) => {
    const ended = await running.get(at);
    if (ended === undefined) return; // its server is not installed, which was reported
    expect(ended, ended.stderr).toMatchObject({ code: 0, signal: null });
    expect(ended.stderr).toBe("");
  });
});
