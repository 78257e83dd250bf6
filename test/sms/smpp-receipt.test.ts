import smpp from "smpp";
import { describe, expect, it } from "vitest";
import { type Deliver, readDeliver } from "../../adapters/sms/smpp/deliver.js";
import { type ReceiptIds, submittedId } from "../../adapters/sms/smpp/ids.js";
import { isReceipt, readReceipt } from "../../adapters/sms/smpp/receipt.js";
import { octetsOf } from "../../adapters/sms/smpp/text.js";
import { isFinal } from "../../src/domain/delivery.js";

function deliver(fields: Record<string, unknown>): Deliver {
  return readDeliver(new smpp.PDU("deliver_sm", { esm_class: 4, ...fields }).toBuffer().subarray(16)) as Deliver;
}

function read(fields: Record<string, unknown>, { receiptIds = "same" as ReceiptIds, receiptOffset = undefined as number | undefined } = {}) {
  return readReceipt(deliver(fields), { receiptIds, receiptOffset, idSpace: "here" });
}

const text = (stat: string, err = "000") =>
  `id:0A1f sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:${stat} err:${err} text:Your code is 482913`;

describe("states", () => {
  it.each([
    ["SCHEDLD", 0, "submitted", undefined],
    ["ENROUTE", 1, "in_transit", undefined],
    ["DELIVRD", 2, "delivered", undefined],
    ["EXPIRED", 3, "undeliverable", "EXPIRED 034"],
    ["DELETED", 4, "undeliverable", "DELETED 034"],
    ["UNDELIV", 5, "undeliverable", "UNDELIV 034"],
    ["ACCEPTD", 6, "submitted", undefined],
    ["UNKNOWN", 7, "unknown", "UNKNOWN 034"],
    ["REJECTD", 8, "undeliverable", "REJECTD 034"],
    ["SKIPPED", 9, "undeliverable", "SKIPPED 034"],
  ])("%s, message_state %i: %s", (stat, state, status, error) => {
    const expected = { messageId: "a1f", idSpace: "here", status, ...(error !== undefined && { error }) };
    expect(read({ short_message: text(stat, "034") })).toEqual(expected);
    expect(read({ receipted_message_id: "0A1f", message_state: state, short_message: "err:034" })).toEqual(expected);
  });

  it.each([
    ...[["SCHEDULED", "submitted"] as const, ["ACCEPTED", "submitted"] as const, ["ENQUEUD", "submitted"] as const, ["SUBMITD", "submitted"] as const],
    ...[["BUFFRED", "in_transit"] as const, ["BUFFERED", "in_transit"] as const, ["SENT", "in_transit"] as const],
    ...[["DELIVERED", "delivered"] as const, ["DELIVERD", "delivered"] as const],
    ...["FAILED", "UNDELIVERABLE", "UNDELIVERED", "UNDELIVRD", "REJECTED", "EXPIRD", "CANCELLED", "SYSERR", "NOROUTE", "BLIST"].map(
      (word) => [word, "undeliverable"] as const,
    ),
  ])("other words that message centres use: %s is %s", (stat, status) => {
    expect(read({ short_message: text(stat) })?.status).toBe(status);
    expect(read({ short_message: text(stat.toLowerCase()) })?.status).toBe(status);
  });

  it("an id that is too long for a verifier names no message", () => {
    expect(read({ receipted_message_id: "x".repeat(257), message_state: 2 })).toBeUndefined();
    expect(read({ receipted_message_id: "x".repeat(256), message_state: 2 })).toMatchObject({ status: "delivered" });
  });

  it("the parameter takes precedence over the text", () => {
    expect(read({ short_message: text("UNDELIV"), message_state: 2 })).toMatchObject({ status: "delivered" });
  });

  it.each(["PDLIVRD", "stat"])("an unknown word does not give a final status: %s", (stat) => {
    const receipt = read({ short_message: text(stat) });
    expect(receipt).toMatchObject({ status: "unknown", error: stat.toUpperCase() });
    expect(receipt && isFinal(receipt.status)).toBe(false);
  });

  it("with an unknown message_state the text gives the status", () => {
    expect(read({ short_message: text("DELIVRD"), message_state: 77 })).toMatchObject({ status: "delivered" });
    expect(read({ receipted_message_id: "1", message_state: 77 })).toEqual({ messageId: "1", idSpace: "here", status: "unknown" });
  });

  it("the error is that of the text, or else the parameter network_error_code, unless it is 0", () => {
    // Network 3 is GSM.
    const error = (octets: number[], err = "000") => read({ short_message: text("UNDELIV", err), network_error_code: Buffer.from(octets) })?.error;
    expect([error([3, 0, 27]), error([3, 1, 0], "034"), error([3, 0, 0], "034"), error([3, 0, 0]), error([27], "034")]).toEqual([
      ...["UNDELIV 27", "UNDELIV 034", "UNDELIV 034", "UNDELIV", "UNDELIV 034"],
    ]);
    expect(read({ receipted_message_id: "1", message_state: 5, network_error_code: Buffer.of(3, 0, 27) })).toMatchObject({ error: "UNDELIV 27" });
  });

  it("an error of 000 is left out", () => {
    expect(read({ short_message: text("EXPIRED") })).toMatchObject({ error: "EXPIRED" });
  });

  it("reads lower case, a text without an error, and UCS-2", () => {
    expect(read({ short_message: "id:77 stat:delivrd" })).toMatchObject({ messageId: "77", status: "delivered" });
    expect(read({ data_coding: 8, short_message: Buffer.from("id:77 stat:DELIVRD", "utf16le").swap16() })).toMatchObject({
      messageId: "77",
      status: "delivered",
    });
  });
});

describe("the time of a receipt", () => {
  it.each([
    [0, "2611201201", "2026-11-20T12:01:00Z"],
    [5.5, "2611201201", "2026-11-20T06:31:00Z"],
    [-8, "261120120159", "2026-11-20T20:01:59Z"],
  ])("is the done date if the offset of its clock is known: %d h, %s", (hours, date, at) => {
    expect(read({ short_message: `id:1 done date:${date} stat:DELIVRD` }, { receiptOffset: hours * 3_600_000 })?.at).toBe(Date.parse(at));
  });

  it("is left out if the offset is unknown, because the date has no time zone", () => {
    expect(read({ short_message: text("DELIVRD") })).not.toHaveProperty("at");
  });

  it.each(["", "26112012", "2613201201", "tomorrow"])("is left out if the date is invalid: %j", (date) => {
    expect(read({ short_message: `id:1 done date:${date} stat:DELIVRD` }, { receiptOffset: 0 })).toEqual({
      messageId: "1",
      idSpace: "here",
      status: "delivered",
    });
  });
});

describe("receipts and other messages", () => {
  it("a receipt with a user data header is read as one without", () => {
    const short_message = Buffer.concat([Buffer.of(5, 0, 3, 1, 1, 1), Buffer.from(text("DELIVRD"))]);
    expect(read({ esm_class: 0x44, short_message })).toEqual(read({ short_message: text("DELIVRD") }));
    expect(read({ esm_class: 0x44, receipted_message_id: "1", message_state: 2 })).toMatchObject({ messageId: "1", status: "delivered" });
  });

  it("a message from a phone is not a receipt, even if its text looks like one", () => {
    expect(isReceipt(deliver({ esm_class: 0, short_message: text("DELIVRD") }))).toBe(false);
  });

  it("esm_class or the parameter receipted_message_id makes a receipt", () => {
    expect(isReceipt(deliver({ esm_class: 4 }))).toBe(true);
    expect(isReceipt(deliver({ esm_class: 0x20 }))).toBe(true);
    expect(isReceipt(deliver({ esm_class: 0, receipted_message_id: "1" }))).toBe(true);
  });

  it.each(["", "stat:DELIVRD", "text: id:5 stat:DELIVRD"])("a text without a message id is not read as a receipt: %j", (short_message) => {
    expect(read({ short_message })).toBeUndefined();
  });
});

it("neither the text of the message nor a long word of the carrier appears in the receipt", () => {
  const receipt = read({ short_message: "id:9 stat:UNDELIV err:14155552671 text:482913 err:482913" });
  expect(receipt).toEqual({ messageId: "9", idSpace: "here", status: "undeliverable", error: "UNDELIV" });
  expect(read({ short_message: "id:9 stat:14155552671" })).toEqual({ messageId: "9", idSpace: "here", status: "unknown" });
});

describe("message ids", () => {
  it.each(["msg_7f3a", "V1StGXR8_Z5jdHi6B-myT"])("%s is the same in a receipt in ASCII and in GSM 03.38, where _ is 0x11", (id) => {
    const receipt = `id:${id} stat:DELIVRD`;
    expect(read({ short_message: Buffer.from(receipt) })?.messageId).toBe(id);
    expect(read({ short_message: octetsOf(receipt, "gsm7", "gsm") })?.messageId).toBe(id);
  });

  it.each([
    ["same", "00Ff", "00FF", "ff"],
    ["same", "000123", "123", "123"],
    ["same", "123", "0000000123", "123"],
    ["same", "0C000000D4AD1B52", "c000000d4ad1b52", "c000000d4ad1b52"],
    ["same", "000", "0", "0"],
    ["same", "8F14E45F-CEEA-467F-A9A1-0123456789AB", "8f14e45f-ceea-467f-a9a1-0123456789ab", "8f14e45f-ceea-467f-a9a1-0123456789ab"],
    ["same", "SMSC-07", "smsc-07", "smsc-07"],
    ["hex-to-decimal", "255", "00FF", "255"],
    ["hex-to-decimal", "0255", "ff", "255"],
    ["decimal-to-hex", "00FF", "255", "ff"],
    ["decimal-to-hex", "123456789ABCDEF0123456789", "90144042682896311822508713865", "123456789abcdef0123456789"],
    ["hex-to-decimal", "UUID-1", "uuid-1", "uuid-1"],
  ] as [ReceiptIds, string, string, string][])("%s: %s in the response and %s in the receipt both become %s", (receiptIds, submitted, receipted, reported) => {
    expect(submittedId(submitted, receiptIds)).toBe(reported);
    expect(read({ short_message: `id:${receipted} stat:DELIVRD` }, { receiptIds })?.messageId).toBe(reported);
    if (receiptIds === "same") expect(read({ receipted_message_id: receipted, message_state: 2 })?.messageId).toBe(reported);
  });

  it.each([
    ["3Xk9aB", "3Xk9Ab"],
    ["00g1", "g1"],
  ])("ids that may belong to two messages stay different: %s, %s", (one, other) => {
    expect(submittedId(one, "same")).not.toBe(submittedId(other, "same"));
    expect(submittedId(one, "same")).toBe(one);
  });

  it("the parameter's id has the base of the response, unless it repeats the text's id", () => {
    const named = (inText: string, parameter: string) =>
      read({ short_message: `id:${inText} stat:DELIVRD`, receipted_message_id: parameter }, { receiptIds: "decimal-to-hex" })?.messageId;
    expect(named("255", "FF")).toBe("ff");
    expect(named("255", "255")).toBe("ff");
    expect(named("0255", "255")).toBe("ff");
  });

  it("an empty id in a response gives no message id", () => {
    expect(submittedId("", "same")).toBeUndefined();
  });
});
