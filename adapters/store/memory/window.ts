import type { MemberClaim } from "../../../src/ports/store.js";
import { joined, numberAt, numberWidth, packed } from "./pack.js";

/** A window's members in ascending order of time, each one string: its end, its time, its name. One alone, which is what most windows hold, is not in a list. */
export type Members = string | readonly string[];

const timeAt = numberWidth;
const nameAt = 2 * numberWidth;

/** The slot in which all members have ended. */
export function endOf(members: Members): number {
  return typeof members === "string" ? numberAt(members, 0) : members.reduce((end, member) => Math.max(end, numberAt(member, 0)), 0);
}

export function sizeOf(members: Members): number {
  return typeof members === "string" ? 1 : members.length;
}

function packMember(end: number, now: number, name: string): string {
  return joined(packed(end), packed(now), name);
}

function isNamed(member: string, name: string): boolean {
  return member.length === nameAt + name.length && member.startsWith(name, nameAt);
}

/** How many members are newer than `since`; the one named `except` does not count. */
export function newer(members: Members = [], since: number, except?: string): number {
  if (typeof members === "string") return numberAt(members, timeAt) > since && (except === undefined || !isNamed(members, except)) ? 1 : 0;
  const [oldest] = members;
  // Mostly all of them are.
  let first = oldest !== undefined && numberAt(oldest, timeAt) > since ? 0 : members.length;
  while (first > 0 && numberAt(members[first - 1] as string, timeAt) > since) first--;
  return members.length - first - (except !== undefined && placeOf(members, except) >= first ? 1 : 0);
}

/** The earliest time after which fewer than `limit` members are newer, the one named `except` left out; `undefined`: there are not so many. */
export function roomSince(members: Members | undefined, limit: number, except: string): number | undefined {
  const list = listOf(members);
  let others = 0;
  for (let i = list.length - 1; i >= 0; i--) {
    const member = list[i] as string;
    if (!isNamed(member, except) && ++others === limit) return numberAt(member, timeAt);
  }
  return undefined;
}

/** The window with a claim granted, which ends in slot `end`. Those that have not ended by `slot` stay, and of them the newest `most`. */
export function withMember(members: Members | undefined, { member, now }: MemberClaim, slot: number, end: number, most: number): Members {
  if (members === undefined) return packMember(end, now, member);
  const list = listOf(members);
  const old = placeOf(list, member);
  const added = packMember(old < 0 ? end : Math.max(end, numberAt(list[old] as string, 0)), now, member);
  const others = old < 0 ? list : list.toSpliced(old, 1);
  let place = others.length;
  while (place > 0 && numberAt(others[place - 1] as string, timeAt) > now) place--;
  let first = Math.max(0, others.length + 1 - most);
  while (first < place && numberAt(others[first] as string, 0) <= slot) first++;
  return membersOf(first === 0 && place === others.length ? others.concat(added) : others.slice(first, place).concat(added, others.slice(place)));
}

/** The window without a member, if that stands there with this very time. */
export function withoutMember(members: Members | undefined, { member, now }: MemberClaim): Members | undefined {
  const list = listOf(members);
  const place = placeOf(list, member);
  return place >= 0 && numberAt(list[place] as string, timeAt) === now ? membersOf(list.toSpliced(place, 1)) : members;
}

/** The names of a window's members, the newest first. */
export function namesOf(members: Members | undefined, limit: number): string[] {
  const list = listOf(members);
  return list
    .slice(Math.max(0, list.length - limit))
    .reverse()
    .map((member) => member.slice(nameAt));
}

function listOf(members: Members = []): readonly string[] {
  return typeof members === "string" ? [members] : members;
}

function membersOf(list: readonly string[]): Members {
  return list.length === 1 ? (list[0] as string) : list;
}

function placeOf(list: readonly string[], name: string): number {
  for (let i = list.length - 1; i >= 0; i--) if (isNamed(list[i] as string, name)) return i;
  return -1;
}
