import smpp from "smpp";
import { describe, expect, it } from "vitest";
import { type Deliver, readDeliver } from "../../adapters/sms/smpp/pdu.js";
import { isReceipt, type ReceiptIds, readReceipt, submittedId } from "../../adapters/sms/smpp/receipt.js";

function deliver(fields: Record<string, unknown>): Deliver {
  return readDeliver(new smpp.PDU("deliver_sm", { esm_class: 4, ...fields }).toBuffer().subarray(16)) as Deliver;
}

const text = (stat: string, err = "000") =>
  `id:0A1f sub:001 dlvrd:001 submit date:2611201200 done date:2611201201 stat:${stat} err:${err} text:Your code is 482913`;

describe("states", () => {
  it.each([
    ["DELIVRD", 2, "delivered", undefined],
    ["ACCEPTD", 6, "submitted", undefined],
    ["ENROUTE", 1, "in_transit", undefined],
    ["EXPIRED", 3, "undeliverable", "EXPIRED 034"],
    ["DELETED", 4, "undeliverable", "DELETED 034"],
    ["UNDELIV", 5, "undeliverable", "UNDELIV 034"],
    ["REJECTD", 8, "undeliverable", "REJECTD 034"],
    ["UNKNOWN", 7, "unknown", "UNKNOWN 034"],
  ])("%s, message_state %i: %s", (stat, state, status, error) => {
    const expected = { status, ...(error !== undefined && { error }) };
    expect(readReceipt(deliver({ short_message: text(stat, "034") }), "same")).toEqual({ messageId: "0A1f", ...expected });
    expect(readReceipt(deliver({ receipted_message_id: "0A1f", message_state: state, short_message: "err:034" }), "same")).toEqual({
      messageId: "0A1f",
      ...expected,
    });
  });

  it("the parameter counts where the text differs", () => {
    expect(readReceipt(deliver({ short_message: text("UNDELIV"), message_state: 2 }), "same")).toEqual({ messageId: "0A1f", status: "delivered" });
  });

  it.each(["SKIPPED", "stat"])("a state that we do not know is unknown: %s", (stat) => {
    expect(readReceipt(deliver({ short_message: text(stat) }), "same")).toMatchObject({ status: "unknown", error: stat.toUpperCase() });
  });

  it("an error of 000 is none", () => {
    expect(readReceipt(deliver({ short_message: text("EXPIRED") }), "same")).toMatchObject({ error: "EXPIRED" });
  });

  it("lower case, no error, UCS-2", () => {
    expect(readReceipt(deliver({ short_message: "id:77 stat:delivrd" }), "same")).toEqual({ messageId: "77", status: "delivered" });
    expect(readReceipt(deliver({ data_coding: 8, short_message: Buffer.from("id:77 stat:DELIVRD", "utf16le").swap16() }), "same")).toEqual({
      messageId: "77",
      status: "delivered",
    });
  });
});

describe("what is not a receipt", () => {
  it("a message from a phone, even if its text looks like one", () => {
    expect(isReceipt(deliver({ esm_class: 0, short_message: text("DELIVRD") }))).toBe(false);
  });

  it("esm_class or the parameter make one", () => {
    expect(isReceipt(deliver({ esm_class: 4 }))).toBe(true);
    expect(isReceipt(deliver({ esm_class: 0x20 }))).toBe(true);
    expect(isReceipt(deliver({ esm_class: 0, receipted_message_id: "1" }))).toBe(true);
  });

  it.each(["", "stat:DELIVRD", "text: id:5 stat:DELIVRD"])("one that names no message is none: %j", (short_message) => {
    expect(readReceipt(deliver({ short_message }), "same")).toBeUndefined();
  });
});

it("neither the text of the message nor a long word of the carrier gets into the receipt", () => {
  const receipt = readReceipt(deliver({ short_message: `id:9 stat:UNDELIV err:14155552671 text:482913 err:482913` }), "same");
  expect(receipt).toEqual({ messageId: "9", status: "undeliverable", error: "UNDELIV" });
});

describe("message ids in two bases", () => {
  it.each([
    ["same", "00Ff", "00Ff", "00Ff"],
    ["hex-to-decimal", "255", "00FF", "255"],
    ["hex-to-decimal", "0255", "ff", "255"],
    ["decimal-to-hex", "00FF", "255", "ff"],
    ["decimal-to-hex", "123456789ABCDEF0123456789", "90144042682896311822508713865", "123456789abcdef0123456789"],
    ["hex-to-decimal", "uuid-1", "uuid-1", "uuid-1"],
  ] as [ReceiptIds, string, string, string][])("%s: answer %s, receipt %s → %s", (ids, submitted, receipted, reported) => {
    expect(submittedId(submitted, ids)).toBe(reported);
    expect(readReceipt(deliver({ short_message: `id:${receipted} stat:DELIVRD` }), ids)?.messageId).toBe(reported);
  });

  it("the parameter is spelt as the answer was, unless it repeats the text", () => {
    const read = (inText: string, parameter: string) =>
      readReceipt(deliver({ short_message: `id:${inText} stat:DELIVRD`, receipted_message_id: parameter }), "decimal-to-hex");
    expect(read("255", "FF")?.messageId).toBe("ff");
    expect(read("255", "255")?.messageId).toBe("ff");
  });

  it("an answer without an id names none", () => {
    expect(submittedId("", "same")).toBeUndefined();
  });
});
