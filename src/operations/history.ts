import type * as z from "zod";
import type { HistoryRequest } from "../contract/operator.js";
import type { Account } from "../domain/account.js";
import { membersOfNumber, ownNumber, recordsOf } from "../messages/number-windows.js";
import type { Context } from "./context.js";
import { type Explanation, explanationOf } from "./explain.js";

/** An authentication of a number, with why it was answered as it was. */
export type HistoryEntry = Explanation;

/** "Every decision … can be asked for by authentication id or by number (`explain`, `history`)" (docs/contract.md#explain): the newest first, refused ones too, out of the windows that are named after the number (docs/contract.md#history). Those whose record has ended are left out. */
export async function historyOf(parts: Context, account: Account, { phone_number, limit }: z.output<typeof HistoryRequest>): Promise<readonly HistoryEntry[]> {
  await parts.records.written();
  const { ids } = await membersOfNumber(parts, ownNumber(parts, account, phone_number));
  const found = await recordsOf(parts, account, ids, limit);
  return found
    .map(({ auth }) => auth)
    .sort((a, b) => b.createdAt - a.createdAt)
    .map((auth) => explanationOf(parts, account, auth));
}
