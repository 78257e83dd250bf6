import fc from "fast-check";
import smpp from "smpp";
import { describe, expect, it } from "vitest";
import { readData, readDeliver } from "../../adapters/sms/smpp/deliver.js";
import type { SmppOptions } from "../../adapters/sms/smpp/options.js";
import { partsOf } from "../../adapters/sms/smpp/parts.js";
import { bindBody, bindCommands, commands, cString, encodePdu, type Pdu, pduReader, readString } from "../../adapters/sms/smpp/pdu.js";
import { submitBody } from "../../adapters/sms/smpp/submission.js";
import { type Alphabet, codingOf, octetsOf } from "../../adapters/sms/smpp/text.js";
import { codePoint } from "../support/code-point.js";

/** Characters of GSM 03.38 with the octets of the standard's tables 6.2.1 and 6.2.1.1. */
const gsm: readonly (readonly [string, string])[] = [
  ["@£$¥èéùìòÇ", "00010203040506070809"],
  ["\nØø\rÅå", "0a0b0c0d0e0f"],
  ["Δ_ΦΓΛΩΠΨΣΘΞ", "101112131415161718191a"],
  ["ÆæßÉ", "1c1d1e1f"],
  [" !\"#¤%&'()*+,-./", "202122232425262728292a2b2c2d2e2f"],
  ["0123456789:;<=>?", "303132333435363738393a3b3c3d3e3f"],
  ["¡AZÄÖÑÜ§", "40415a5b5c5d5e5f"],
  ["¿azäöñüà", "60617a7b7c7d7e7f"],
  ["\f^{}\\[~]|€", "1b0a1b141b281b291b2f1b3c1b3d1b3e1b401b65"],
];

describe("text", () => {
  const encoded = (text: string, alphabet: Alphabet = "gsm") => {
    const coding = codingOf(text, alphabet);
    return [coding, octetsOf(text, coding, alphabet).toString("hex")];
  };

  it.each(gsm)("encodes the default alphabet with one octet per septet: %j", (text, octets) => {
    expect(encoded(text)).toEqual(["gsm7", octets]);
  });

  it.each([
    ["кот", "043a043e0442"],
    ["ç", "00e7"],
    ["a\x1b", "0061001b"],
    ["😀", "d83dde00"],
  ])("uses big-endian UCS-2 if one character is outside the alphabet: %j", (text, octets) => {
    expect(encoded(text)).toEqual(["ucs2", octets]);
  });

  it.each([
    ["ascii", "@a[{~}]_$", "gsm7", "40615b7b7e7d5d5f24"],
    ["ascii", "é", "ucs2", "00e9"],
    ["latin1", "@é£Ü{}", "gsm7", "40e9a3dc7b7d"],
    ["latin1", "€", "ucs2", "20ac"],
    ["latin1", "Δ", "ucs2", "0394"],
    ["latin1", "ç", "ucs2", "00e7"],
    ["ascii", "`", "ucs2", "0060"],
  ] as const)("uses %s only if it and GSM 03.38 both have every character, else UCS-2: %s", (alphabet, text, coding, octets) => {
    expect(encoded(text, alphabet)).toEqual([coding, octets]);
  });
});

describe("PDUs as npm smpp reads them", () => {
  const read = (command: number, body: Buffer) => new smpp.PDU(encodePdu({ command, status: 0, sequence: 7, body }));
  const submit = {
    serviceType: "OTP",
    source: { ton: 5, npi: 0, address: "Acme" },
    destination: { ton: 1, npi: 1, address: "14155552671" },
    validityPeriod: "",
    registeredDelivery: 1,
  } as const;

  it("bind_transceiver", () => {
    expect(read(bindCommands.transceiver, bindBody("me", "secret", "sms"))).toMatchObject({
      command: "bind_transceiver",
      sequence_number: 7,
      system_id: "me",
      password: "secret",
      system_type: "sms",
      interface_version: 0x34,
    });
  });

  const parts = (text: string, longMessages: NonNullable<SmppOptions["longMessages"]>, alphabet: Alphabet = "gsm") =>
    (partsOf(text, { alphabet, dataCoding: 0, longMessages }, 0x1234) ?? []).map((part) =>
      read(commands.submitSm, submitBody({ ...submit, ...part, parameters: new Map(part.parameters) })),
    );

  it("submit_sm, in both alphabets", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ maxLength: 70 }), fc.string({ unit: codePoint, maxLength: 35 })), (text) => {
        // npm smpp drops a byte order mark.
        fc.pre(!text.startsWith("\ufeff"));
        const [pdu] = parts(text, "payload");
        // npm smpp reads coding 0 in its default alphabet, GSM 03.38.
        expect(pdu).toMatchObject({ command: "submit_sm", service_type: "OTP", source_addr: "Acme", destination_addr: "14155552671", registered_delivery: 1 });
        expect(String(pdu?.short_message?.message ?? "")).toBe(text);
      }),
      { numRuns: 50 },
    );
  });

  it.each([
    ["160 septets", "x".repeat(160), "short_message"],
    ["161 septets", "x".repeat(161), "message_payload"],
    ["80 septets with escapes", "€".repeat(80), "short_message"],
    ["70 units", "я".repeat(70), "short_message"],
    ["71 units", "я".repeat(71), "message_payload"],
  ] as const)("a text of %s is sent in %s", (_, text, field) => {
    const [pdu, ...further] = parts(text, "payload");
    expect(further).toEqual([]);
    expect(pdu?.[field]?.message).toBe(text);
    expect(field === "short_message" ? pdu?.message_payload : pdu?.short_message?.message?.length).toBe(field === "short_message" ? undefined : 0);
  });

  const long: readonly (readonly [what: string, text: string, lengths: readonly number[]])[] = [
    ["161 septets", "x".repeat(161), [153, 8]],
    ["306 septets", "x".repeat(306), [153, 153]],
    ["an escape at the edge", `${"x".repeat(152)}€${"x".repeat(152)}`, [152, 152, 1]],
    ["71 units", "я".repeat(71), [67, 4]],
    ["a surrogate pair at the edge", `${"я".repeat(66)}😀${"я".repeat(3)}`, [66, 5]],
  ];

  it.each(long)("a text of %s is split into parts with a header (udh)", (_, text, lengths) => {
    const pdus = parts(text, "udh");
    expect(pdus.map((pdu) => String(pdu.short_message?.message))).toEqual(split(text, lengths));
    for (const [index, pdu] of pdus.entries()) {
      expect(pdu.esm_class).toBe(0x40);
      expect(pdu.short_message?.udh?.map((octets) => octets.toString("hex"))).toEqual([`000334${hex(pdus.length)}${hex(index + 1)}`]);
    }
  });

  it.each(long)("a text of %s is split into parts with parameters (sar)", (_, text, lengths) => {
    const pdus = parts(text, "sar");
    expect(pdus.map((pdu) => String(pdu.short_message?.message))).toEqual(split(text, lengths));
    for (const [index, pdu] of pdus.entries()) {
      expect(pdu).toMatchObject({ esm_class: 0, sar_msg_ref_num: 0x1234, sar_total_segments: pdus.length, sar_segment_seqnum: index + 1 });
    }
  });

  it("parts in ASCII and Latin-1 are as long as in GSM 03.38, where `{` takes two septets", () => {
    const text = "{".repeat(100);
    expect(parts(text, "udh", "latin1").map((pdu) => pdu.short_message?.message?.length)).toEqual([76, 24]);
    expect(parts("x".repeat(160), "udh", "ascii")).toHaveLength(1);
  });

  it("a text has up to 255 parts", () => {
    for (const longMessages of ["payload", "udh", "sar"] as const) {
      const count = (text: string) => partsOf(text, { alphabet: "gsm", dataCoding: 0, longMessages }, 0)?.length;
      expect(count("x".repeat(255 * 153))).toBe(longMessages === "payload" ? 1 : 255);
      expect(count("x".repeat(255 * 153 + 1))).toBeUndefined();
    }
  });
});

function split(text: string, lengths: readonly number[]): string[] {
  let at = 0;
  return lengths.map((length) => text.slice(at, (at += length)));
}

function hex(octet: number): string {
  return octet.toString(16).padStart(2, "0");
}

describe("deliver_sm as npm smpp writes it", () => {
  const write = (fields: Record<string, unknown>) => new smpp.PDU("deliver_sm", fields).toBuffer().subarray(16);
  const full = write({
    source_addr: "1",
    destination_addr: "2",
    esm_class: 4,
    short_message: "id:1 stat:DELIVRD",
    receipted_message_id: "x1",
    message_state: 2,
  });

  it("reads its text and parameters", () => {
    const deliver = readDeliver(full);
    expect(deliver).toMatchObject({ esmClass: 4, text: Buffer.from("id:1 stat:DELIVRD") });
    expect(readString(deliver?.parameters.get(0x1e) as Buffer)).toBe("x1");
    expect(deliver?.parameters.get(0x427)).toEqual(Buffer.of(2));
  });

  it("reads message_payload if short_message is empty", () => {
    expect(readDeliver(write({ short_message: "", message_payload: Buffer.from("id:2") }))?.text).toEqual(Buffer.from("id:2"));
  });

  it("a PDU that is truncated anywhere does not throw, and is read only if its text is complete", () => {
    const parameters = full.length - (4 + 3) - (4 + 1);
    for (let length = 0; length < full.length; length += 1) expect(readDeliver(full.subarray(0, length)) === undefined, `${length}`).toBe(length < parameters);
  });

  it("arbitrary octets do not throw", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => void readDeliver(Buffer.from(octets))));
  });
});

describe("data_sm as npm smpp writes it", () => {
  const full = new smpp.PDU("data_sm", {
    source_addr: "1",
    destination_addr: "2",
    esm_class: 4,
    data_coding: 8,
    receipted_message_id: "x1",
    message_payload: "a",
  })
    .toBuffer()
    .subarray(16);

  it("reads its text and parameters", () => {
    const data = readData(full);
    expect(data).toMatchObject({ esmClass: 4, dataCoding: 8, text: data?.parameters.get(0x424) });
    expect(readString(data?.parameters.get(0x1e) as Buffer)).toBe("x1");
  });

  it("a truncated PDU and arbitrary octets do not throw", () => {
    for (let length = 0; length < full.length; length += 1) readData(full.subarray(0, length));
    expect(readData(full.subarray(0, 9))).toBeUndefined();
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => void readData(Buffer.from(octets))));
  });
});

describe("framing", () => {
  const pdu = fc.record({
    command: fc.nat(0xffffffff),
    status: fc.nat(0xffffffff),
    sequence: fc.nat(0xffffffff),
    body: fc.uint8Array({ maxLength: 40 }).map((octets) => Buffer.from(octets)),
  });

  it("PDUs are read whole and in order, wherever the stream is cut", () => {
    fc.assert(
      fc.property(fc.array(pdu, { maxLength: 6 }), fc.array(fc.nat(60), { maxLength: 20 }), (pdus, lengths) => {
        let stream = Buffer.concat(pdus.map(encodePdu));
        const read = pduReader();
        const out: Pdu[] = [];
        for (const length of [...lengths, stream.length]) {
          out.push(...read(stream.subarray(0, length)).pdus);
          stream = stream.subarray(length);
        }
        expect(out).toEqual(pdus);
      }),
    );
  });

  it.each([0, 15, 70_001, 0xffffffff])("a length of %i is reported as a problem, after the PDUs before it are read", (length) => {
    const good = encodePdu({ command: 0x15, status: 0, sequence: 1, body: cString("") });
    const bad = Buffer.alloc(4);
    bad.writeUInt32BE(length);
    const { pdus, problem } = pduReader()(Buffer.concat([good, bad]));
    expect(pdus).toHaveLength(1);
    expect(problem).toContain(String(length));
  });

  it("the longest PDU that a peer can send is accepted", () => {
    const body = Buffer.alloc(65_535 + 300);
    expect(pduReader()(encodePdu({ command: 5, status: 0, sequence: 1, body })).pdus).toHaveLength(1);
  });
});
