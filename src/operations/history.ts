import type * as z from "zod";
import type { HistoryRequest } from "../contract/operator.js";
import type { Account } from "../domain/account.js";
import { membersOfNumber, ownNumber, recordsOf } from "../messages/number-windows.js";
import type { Context } from "./context.js";
import { type Explanation, explanationOf } from "./explain.js";

/** An authentication of a number, and why it has its status. */
export type HistoryEntry = Explanation;

/**
 * "Every decision … can be queried by authentication id or by number (`explain`, `history`)"
 * (docs/contract.md#explain): newest first, blocked ones included, from the number's windows
 * (docs/contract.md#history). Ended records are omitted.
 */
export async function historyOf(parts: Context, account: Account, { phone_number, limit }: z.output<typeof HistoryRequest>): Promise<readonly HistoryEntry[]> {
  await parts.records.written();
  const { ids } = await membersOfNumber(parts, ownNumber(parts, account, phone_number));
  const found = await recordsOf(parts, account, ids, limit);
  return found
    .map(({ auth }) => auth)
    .sort((a, b) => b.createdAt - a.createdAt)
    .map((auth) => explanationOf(parts, account, auth));
}
