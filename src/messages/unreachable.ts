import type { StoreDeadline } from "../core/deadline.js";
import { type Authentication, hasNumber } from "../domain/authentication.js";
import { day } from "../domain/time.js";
import { storeLater } from "../observability/observed.js";
import type { Channel } from "../ports/sms-sender.js";
import type { Messages } from "./messages.js";

/** How long it is remembered that a number is not on a channel (docs/contract.md#unreachable). Milliseconds. */
const rememberedFor = 7 * day;

/** Channels that a number may not be on. */
const optional: readonly Channel[] = ["whatsapp", "telegram", "viber", "rcs"];

/** The names of what is remembered of a number. `number`: its keyed hash. */
export function unreachableKeys(customer: string, number: string): string[] {
  return optional.map((channel) => keyOf(customer, number, channel));
}

function keyOf(customer: string, number: string, channel: Channel): string {
  return `${customer}:off:${channel}:${number}`;
}

/**
 * Returns the channels of the sender that a number is known not to be on; `undefined` if there is none. If the store
 * fails, none is known.
 */
export async function unreachableChannels(
  { clock, keyring, monitor, sender, store }: Messages,
  deadline: StoreDeadline,
  customer: string,
  number: string,
): Promise<readonly Channel[] | undefined> {
  const asked = sender.channels?.filter((channel) => optional.includes(channel)) ?? [];
  if (asked.length === 0) return undefined;
  const masked = keyring.pseudonym(number);
  const now = clock.now();
  try {
    const untils = await deadline.call(() => Promise.all(asked.map((channel) => store.get(keyOf(customer, masked, channel)))));
    return asked.filter((_, at) => Number(untils[at] ?? 0) > now);
  } catch (err) {
    monitor.throttledLog.warn({ err }, "the store could not say which channels the number is not on; all are tried");
    return undefined;
  }
}

/** Remembers in the background that a number is not on a channel. */
export function rememberUnreachable(messages: Messages, { customer, id, number }: Authentication, channel: Channel): void {
  const { clock, keyring, store } = messages;
  if (!optional.includes(channel) || !hasNumber({ number })) return;
  const now = clock.now();
  const keepUntil = now + rememberedFor;
  const kept = messages.newDeadline().call(() => store.put(keyOf(customer, keyring.pseudonym(number), channel), String(keepUntil), { now, keepUntil }));
  storeLater(messages, `off ${id}`, kept, { authentication_uuid: id }, "that a number is not on a channel could not be stored");
}
