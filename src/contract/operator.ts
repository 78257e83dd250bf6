import * as z from "zod";
import { PhoneNumber, Uuid } from "./fields.js";

/** A number of a customer, for operators' direct calls. */
export const NumberRequest = z.object({ customer_uuid: Uuid, phone_number: PhoneNumber });

const limit = "must be a whole number from 1 to 1,000";

export const HistoryRequest = z.object({ ...NumberRequest.shape, limit: z.int(limit).min(1, limit).max(1_000, limit).default(50) });

const dateOrTimestamp = "must be a Date, or a timestamp such as 2026-03-01T12:00:00Z";
const time = z
  .union([z.iso.datetime({ offset: true, error: dateOrTimestamp }), z.date(dateOrTimestamp)], dateOrTimestamp)
  .transform((one) => new Date(one).getTime())
  .refine((ms) => ms >= 0, "must be after 1970");

export const StatsRequest = z
  .object({ customer_uuid: Uuid, from: time, to: time })
  .refine(({ from, to }) => from < to, { path: ["to"], error: "must be later than from" });
