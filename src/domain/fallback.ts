import { type Authentication, hasNumber, isExpired, nothingSent, type SendDecision, withDecision } from "./authentication.js";
import { checksUsedUp } from "./check.js";
import { type Decision, isEnforced } from "./decision.js";
import type { Policy } from "./policy.js";

/** When a record's fallback is due; `undefined` if it has none, or its code was entered. */
export function fallbackTime(auth: Authentication): number | undefined {
  return auth.validated || auth.canceled === true ? undefined : auth.fallbackAt;
}

/** When a record next needs work because of a fallback: it is due, or what was kept for it is to be erased. */
export function fallbackWork(auth: Authentication): number | undefined {
  const due = fallbackTime(auth);
  return due === undefined || auth.kept === undefined ? (due ?? auth.kept?.until) : Math.min(due, auth.kept.until);
}

/** Erases what was kept too long. */
export function withoutOldCode(auth: Authentication, now: number): Authentication {
  return auth.kept !== undefined && auth.kept.until <= now ? { ...auth, kept: undefined, fallbackAt: undefined } : auth;
}

/**
 * Decides whether another message replaces the newest one, which did not arrive (docs/contract.md#fallback). `fired`: the
 * caller's own rules and the lists that block it.
 */
export function decideFallback(auth: Authentication, fired: readonly Decision[], now: number, policy: Policy): SendDecision<"none"> {
  const due = fallbackTime(auth);
  if (due === undefined || due > now) return { status: "none", auth };
  const isOver =
    isExpired(auth, now) ||
    auth.status !== "pending" ||
    checksUsedUp(auth, policy) ||
    nothingSent(auth) ||
    !hasNumber(auth) ||
    (auth.purpose !== undefined && auth.kept === undefined);
  if (isOver) return { status: "none", auth, next: withoutFallback(auth, []) };
  if (fired.some(isEnforced)) return { status: "none", auth, next: withoutFallback(auth, fired) };
  return { send: withDecision(auth, reasonOf(auth, now)) };
}

/** The record once its fallback will not be sent, with the decisions that blocked it. */
export function withoutFallback(auth: Authentication, decisions: readonly Decision[]): Authentication {
  return { ...decisions.reduce(withDecision, auth), fallbackAt: undefined, kept: undefined };
}

/** Why the newest message is replaced, for `explain`. */
function reasonOf({ attempts, lastSendAt, sends }: Authentication, now: number): Decision {
  const { attempt, delivery, route = "the route" } = sends.at(-1) ?? { attempt: attempts };
  const reason = delivery === "undeliverable" ? `undeliverable by ${route}` : `${route} silent for ${Math.round((now - lastSendAt) / 1000)} s`;
  return { at: now, rule: "fallback", mode: "route", reason, attempt };
}
