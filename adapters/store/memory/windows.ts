import type { Claim, ReserveResult } from "../../../src/ports/store.js";
import { Ending, Expiry } from "./expiry.js";
import { Members } from "./members.js";
import { compact, TextMap } from "./text.js";

class Window extends Ending<Window> {
  constructor(
    readonly name: string,
    keepUntil: number,
    readonly members: Members,
    /** The longest that a member had to be kept, in milliseconds. */
    public span: number,
  ) {
    super(keepUntil);
  }
}

const granted: ReserveResult = { granted: true };

/** Windows by name and by end. Everything happens in one tick, and every limit is exact, however large. */
export class Windows {
  readonly #windows = new TextMap<Window>();
  readonly #expiry = new Expiry<Window>();
  /** Members in all windows. */
  size = 0;

  /** `makeRoom` is called with the number of members more, before they are kept; it throws when there is no room. */
  reserve(claims: readonly Claim[], makeRoom: (more: number) => void): ReserveResult {
    let more = 0;
    for (let i = 0; i < claims.length; i++) {
      const { window, member, limit, since } = claims[i] as Claim;
      const members = this.#windows.get(window)?.members;
      const at = members?.timeOf(member);
      if (at === undefined) more++;
      const others = members === undefined ? 0 : members.newer(since) - (at !== undefined && at > since ? 1 : 0);
      if (others >= limit) return { granted: false, refusedBy: i };
    }
    if (more > 0) makeRoom(more);
    let given: string | undefined;
    let member = "";
    for (const claim of claims) {
      if (claim.member !== given) {
        given = claim.member;
        member = compact(given);
      }
      this.#take(claim, member);
    }
    return granted;
  }

  count(name: string, since: number): number {
    return this.#windows.get(name)?.members.newer(since) ?? 0;
  }

  /** Forgets one window that has ended before `now`; false when there is none. */
  forgetOne(now: number): boolean {
    const window = this.#expiry.ended(now);
    if (window === undefined) return false;
    this.#expiry.remove(window);
    this.#windows.delete(window.name);
    this.size -= window.members.size;
    return true;
  }

  #take(claim: Claim, member: string): void {
    const { now, keepUntil } = claim;
    const window = this.#windows.get(claim.window);
    if (window === undefined) {
      const created = new Window(compact(claim.window), keepUntil, new Members(member, now), keepUntil - now);
      this.#windows.set(created.name, created);
      this.#expiry.add(created);
      this.size++;
      return;
    }
    window.span = Math.max(window.span, keepUntil - now);
    this.size -= window.members.size;
    if (window.members.timeOf(member) !== now) window.members.set(member, now, now - window.span);
    this.size += window.members.size;
    if (keepUntil > window.keepUntil) this.#expiry.move(window, keepUntil);
  }
}
