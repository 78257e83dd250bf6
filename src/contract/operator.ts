import * as z from "zod";
import { integer, PhoneNumber, Uuid } from "./fields.js";

/** A number of a customer, for operators' direct calls. */
export const NumberRequest = z.object({ customer_uuid: Uuid, phone_number: PhoneNumber });

function limit(most: number, usual: number) {
  return integer(1, most, `must be a whole number from 1 to ${most.toLocaleString("en-US")}`).default(usual);
}

export const HistoryRequest = z.object({ ...NumberRequest.shape, limit: limit(1_000, 50) });

export const DeadLettersRequest = z.object({ limit: limit(10_000, 1_000) });

export const WebhookSecretsRequest = z.object({ customer_uuid: Uuid });

const dateOrTimestamp = "must be a Date, or a timestamp such as 2026-03-01T12:00:00Z";
const time = z
  .union([z.iso.datetime({ offset: true, error: dateOrTimestamp }), z.date(dateOrTimestamp)], dateOrTimestamp)
  .transform((one) => new Date(one).getTime())
  .refine((ms) => ms >= 0, "must be after 1970");

export const StatsRequest = z
  .object({ customer_uuid: Uuid, from: time, to: time })
  .refine(({ from, to }) => from < to, { path: ["to"], error: "must be later than from" });
