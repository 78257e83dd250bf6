import { expect } from "vitest";
import { until } from "../support/redis.js";
import { type Answer, newNumber, type Service } from "../support/redis-service.js";

/** "Every request ends within its one deadline for all store calls (2 s)"; the rest allows for a slow test machine. */
export const deadline = 2_000 + 8_000;
/**
 * "service is back within 2 s of the client being able to reach the server"; the rest allows for a slow test machine.
 */
export const back = 2_000 + 8_000;

/** The measurements that are printed for a failure. */
export type Figures = Record<string, string | number>;

/** Each response is 200, or 503 with `Retry-After`, and never later than the deadline. */
export function expectInTime(answers: readonly Answer[]): void {
  for (const { status, retryAfter, body, ms } of answers) {
    expect([200, 503]).toContain(status);
    if (status === 503) expect({ retryAfter, code: body.code }).toEqual({ retryAfter: "2", code: "unavailable" });
    expect(ms).toBeLessThan(deadline);
  }
}

export const refused = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 503).length;
export const slowest = (answers: readonly Answer[]) => Math.round(Math.max(...answers.map(({ ms }) => ms)));

/** Milliseconds until a request is served. */
export async function timeUntilServed(service: Service, within = back): Promise<number> {
  const started = performance.now();
  await until("the service is back", async () => (await service.create(newNumber())).status === 200);
  const served = Math.round(performance.now() - started);
  expect(served).toBeLessThan(within);
  return served;
}

/** Requests keep coming while open connections get no responses: they are replaced, and each request ends in time. */
export async function throughSilence(service: Service, proxy: { mute(): void }): Promise<Figures> {
  expect((await service.create(newNumber())).status).toBe(200);
  proxy.mute();
  const before = service.sent.length;
  const started = performance.now();
  const during: Promise<Answer>[] = [];
  await until("it is served again", async () => {
    during.push(service.create(newNumber()));
    return service.sent.length > before;
  });
  const figures = { "served again after ms": Math.round(performance.now() - started) };
  const answers = await Promise.all(during);
  expectInTime(answers);
  expect(refused(answers)).toBeGreaterThan(0);
  return figures;
}

/**
 * Repeats a request under its key while the response is 503, as clients do: a pool may not have all its connections
 * back yet.
 */
export async function served(ask: () => Promise<Answer>, started = performance.now()): Promise<Answer> {
  const answer = await ask();
  return answer.status === 503 && performance.now() - started < back ? served(ask, started) : answer;
}

/** A create, a check and a retry get 503 in time and send nothing. */
export async function expectClosed(service: Service, id: string): Promise<Answer[]> {
  const sentBefore = service.sent.length;
  const closed = await Promise.all([service.create(newNumber()), service.check(id, service.codeOf(id)), service.retry(id)]);
  expectInTime(closed);
  expect(refused(closed)).toBe(closed.length);
  expect(service.sent).toHaveLength(sentBefore);
  return closed;
}

/**
 * An outage during creates, retries and checks: what was acknowledged before can be checked afterwards, no message is
 * sent that was not stored, and no budget is exceeded.
 *
 * @param hasKept Whether the server still has what it wrote before; one without a disk does not.
 */
export async function throughOutage(
  service: Service,
  down: () => Promise<void> | void,
  up: () => Promise<void> | void,
  hasKept: () => Promise<boolean> = async () => true,
): Promise<Figures> {
  // On a loaded machine the first connections may take longer than a request's deadline.
  const created = (await Promise.all(Array.from({ length: 10 }, () => service.create(newNumber())))).filter(({ status }) => status === 200);
  const acknowledged = created.map(({ body }) => body.authentication_uuid);
  expect(acknowledged.length).toBeGreaterThan(0);
  await timeUntilServed(service);
  const guessed = (await service.create(newNumber())).body.authentication_uuid;
  const crowded = newNumber();
  const wrong = service.wrongCodeFor(guessed);
  const burst: Promise<Answer>[] = [];
  const guesses: Promise<Answer>[] = [];
  for (let turn = 0; turn < 20; turn++) {
    burst.push(service.create(crowded), service.create(newNumber()));
    guesses.push(service.check(guessed, wrong));
    if (turn === 10) {
      await burst[4];
      await down();
    }
  }
  const during = await Promise.all([...burst, ...guesses]);
  expectInTime(during);
  const closed = await expectClosed(service, guessed);
  await up();
  const figures = {
    "requests refused": refused(during),
    "slowest answer ms": slowest([...during, ...closed]),
    "served again after ms": await timeUntilServed(service),
  };
  const checks = await Promise.all(acknowledged.map((id) => served(() => service.check(id, service.codeOf(id), id))));
  if (!(await hasKept())) {
    expect(checks.map(({ body }) => body.code)).toEqual(checks.map(() => "invalid_auth_uuid"));
    return { ...figures, "authentications lost": checks.length };
  }
  expect(checks.map(({ body }) => body.status)).toEqual(checks.map(() => "valid"));
  const later = await Promise.all(Array.from({ length: 10 }, () => service.check(guessed, wrong)));
  const judged = [...(await Promise.all(guesses)), ...later].filter(({ body }) => body.status === "invalid").length;
  expect(judged).toBeLessThanOrEqual(5);
  await Promise.all(Array.from({ length: 10 }, () => service.create(crowded)));
  expect(service.sent.filter(({ to }) => to === crowded).length).toBeLessThanOrEqual(5);
  return { ...figures, "wrong codes judged": judged };
}

/**
 * Connections cut before or after the work was done: nothing is sent, no more than 5 wrong codes get a verdict, and a
 * check repeated with its Idempotency-Key gets its result.
 */
export async function throughCuts(service: Service, cut: (cutting: boolean) => void, backWithin = back): Promise<Figures> {
  const { authentication_uuid: guessed } = (await service.create(newNumber())).body;
  const { authentication_uuid: validated } = (await service.create(newNumber())).body;
  const wrong = service.wrongCodeFor(guessed);
  const sentBefore = service.sent.length;
  cut(true);
  const during = await Promise.all([
    service.create(newNumber()),
    ...Array.from({ length: 3 }, () => service.check(guessed, wrong)),
    service.check(validated, service.codeOf(validated), "key"),
  ]);
  expectInTime(during);
  expect(refused(during)).toBe(during.length);
  expect(service.sent).toHaveLength(sentBefore);
  cut(false);
  const served = await timeUntilServed(service, backWithin);
  expect((await service.check(validated, service.codeOf(validated), "key")).body.status).toBe("valid");
  expect((await service.check(validated, service.codeOf(validated))).body.status).toBe("already_validated");
  let judged = 0;
  while ((await service.check(guessed, wrong)).body.status === "invalid") judged += 1;
  expect(judged).toBeLessThanOrEqual(5);
  return {
    "requests refused": refused(during),
    "slowest answer ms": slowest(during),
    "served again after ms": served,
    "wrong codes judged": judged,
  };
}
