import { describe, it } from "vitest";
import { smppSender } from "../../adapters/sms/smpp/index.js";
import { type CarrierBehaviour, type SenderSubject, senderContract } from "../../src/testing/sender-contract.js";
import { type Handler, password, startPeer, systemId } from "../support/smpp.js";

const status =
  (command_status: number): Handler =>
  (pdu, to) =>
    void to.send(pdu.response({ command_status }));

const submits: Readonly<Partial<Record<CarrierBehaviour, Handler>>> = {
  refuses: status(0x0b),
  throttles: status(0x58),
  fails: status(0xff),
  garbles: (_, to) => void to.socket.write("HTTP/1.1 200 OK\r\n\r\n"),
  withholds: () => {},
  cuts: (_, to) => to.destroy(),
};

const subject: SenderSubject = {
  async open(behaviour) {
    const peer = await startPeer();
    const submit = submits[behaviour];
    if (submit) peer.on("submit_sm", submit);
    if (behaviour === "unreachable") await peer.stop();
    return {
      sender: smppSender({ host: "127.0.0.1", port: peer.port, systemId, password, rebind: { min: 60 }, drainTimeout: 0.1 }),
      received: () =>
        peer.of("submit_sm").map((pdu) => ({ to: `+${pdu.destination_addr}`, text: String((pdu.message_payload ?? pdu.short_message)?.message) })),
      close: () => peer.stop(),
    };
  },
};

describe("the sender contract, against npm smpp", () => {
  for (const { name, run } of senderContract()) it(name, () => run(subject));
});
