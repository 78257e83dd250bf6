import { connect as connectTcp, isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Deliver, readData, readDeliver } from "./deliver.js";
import { type BindRole, bindBody, bindCommands, commands, cString, emptyBody, encodePdu, type Pdu, pduReader, responseBit } from "./pdu.js";
import type { Settings } from "./settings.js";
import { statuses } from "./status.js";

/** The peer's response to a request, or why there is none. */
export type Answer = Pdu | { readonly lost: string };

export interface SessionEvents {
  bound(): void;
  /** A deliver_sm or data_sm, `undefined` if truncated; `reply` takes the command_status for the peer. */
  deliver(delivered: Deliver | undefined, reply: (status: number) => void): void;
  /** Whether reading must pause; called after each read. `readOn` ends the pause. */
  full(): boolean;
  /** Called once, at the end of the session. `refusal`: the status with which the peer rejected the bind. */
  ended(reason: string, refusal?: number): void;
}

export type Session = ReturnType<typeof openSession>;

/** The highest sequence_number (SMPP 3.4, 3.2). */
const lastSequence = 0x7fffffff;

/** Connects and binds: one connection from start to end. It never throws and never emits. */
export function openSession(settings: Settings, role: BindRole, events: SessionEvents) {
  const { host, port, clock, responseTimeout, enquireLinkAfter } = settings;
  const pending = new Map<number, (answer: Answer) => void>();
  const read = pduReader();
  let phase: "opening" | "bound" | "unbinding" | "ended" = "opening";
  let sequence = 0;
  let heardAt = clock.now();
  let probing = false;
  /** When reading last paused, in milliseconds since the epoch. */
  let heldAt = Number.NEGATIVE_INFINITY;
  let cancelProbe = () => {};

  // Server name indication takes host names only, and tls.connect does not derive it from `host`.
  const name = isIP(host) === 0 ? { servername: host } : {};
  const socket = settings.tls === undefined ? connectTcp({ host, port }) : connectTls({ ...name, ...settings.tls, host, port });
  socket.setNoDelay(true);
  const cancelBind = clock.after(settings.bindTimeout, () => destroy(`no bind within ${settings.bindTimeout / 1000} s`));

  socket.once(settings.tls === undefined ? "connect" : "secureConnect", () => {
    request(bindCommands[role], bindBody(settings.systemId, settings.password, settings.systemType), (answer) => {
      if ("lost" in answer) return destroy(answer.lost);
      if (answer.status !== statuses.ESME_ROK || answer.command === commands.genericNack) {
        end("the peer rejected the bind", answer.status);
        socket.destroy();
        return;
      }
      phase = "bound";
      cancelBind();
      watch(enquireLinkAfter);
      events.bound();
    });
  });
  socket.on("data", (chunk: Buffer) => {
    const { pdus, problem } = read(chunk);
    for (const pdu of pdus) if (phase !== "ended") receive(pdu);
    if (problem !== undefined) destroy(problem);
    if (phase === "ended") return;
    // A peer that does not read its responses gets no more of them.
    if (socket.writableNeedDrain) awaitDrain();
    if (socket.writableNeedDrain || events.full()) {
      heldAt = clock.now();
      socket.pause();
    }
  });
  socket.on("error", (error: NodeJS.ErrnoException) => end(error.code === undefined ? error.message : `${error.code} at ${host}:${port}`));
  socket.on("close", () => end("the peer closed the connection"));

  function end(reason: string, refusal?: number): void {
    if (phase === "ended") return;
    phase = "ended";
    readOn();
    cancelBind();
    cancelProbe();
    const open = [...pending.values()];
    pending.clear();
    events.ended(reason, refusal);
    for (const done of open) done({ lost: `connection lost: ${reason}` });
  }

  function awaitDrain(): void {
    const cancel = clock.after(responseTimeout, () => destroy(`the peer has not read its responses for ${responseTimeout / 1000} s`), "background");
    socket.once("close", cancel);
    socket.once("drain", () => {
      cancel();
      socket.off("close", cancel);
      if (!events.full()) readOn();
    });
  }

  /** Resumes reading after a pause. */
  function readOn(): void {
    if (!socket.isPaused() || (socket.writableNeedDrain && phase !== "ended")) return;
    heldAt = clock.now();
    socket.resume();
  }

  /** Ends the session at once. */
  function destroy(reason: string): void {
    end(reason);
    socket.destroy();
  }

  /**
   * Ends the session once all data is written; a peer that does not close its side gets the response timeout to do so.
   */
  function leave(reason: string): void {
    end(reason);
    const cancel = clock.after(responseTimeout, () => socket.destroy(), "background");
    socket.once("close", cancel);
    socket.end();
  }

  /** Writes a request; the session must be bound. `done` is called exactly once. */
  function request(command: number, body: Buffer, done: (answer: Answer) => void): void {
    sequence = sequence === lastSequence ? 1 : sequence + 1;
    const own = sequence;
    const cancel = clock.after(responseTimeout, () => {
      pending.delete(own);
      done({ lost: `no response within ${responseTimeout / 1000} s` });
      if (command === commands.submitSm) probe();
    });
    pending.set(own, (answer) => {
      cancel();
      const strange = "command" in answer && answer.command !== command + responseBit && answer.command !== commands.genericNack;
      done(strange ? { lost: "the peer responded with the wrong command" } : answer);
    });
    socket.write(encodePdu({ command, status: statuses.ESME_ROK, sequence: own, body }));
  }

  function respond(to: Pdu, status: number, body = emptyBody, command = to.command + responseBit): void {
    if (phase !== "ended") socket.write(encodePdu({ command, status, sequence: to.sequence, body }));
  }

  function receive(pdu: Pdu): void {
    heardAt = clock.now();
    if (pdu.command >= responseBit) {
      const done = pending.get(pdu.sequence);
      pending.delete(pdu.sequence);
      if (done !== undefined) done(pdu);
      // The peer could not find the start of one of our PDUs, so it may not find the next one either.
      else if (pdu.command === commands.genericNack && pdu.sequence === 0) destroy("the peer lost track (generic_nack without a sequence number)");
      return;
    }
    switch (pdu.command) {
      case commands.enquireLink:
        respond(pdu, statuses.ESME_ROK);
        break;
      case commands.deliverSm:
        take(pdu, readDeliver);
        break;
      case commands.dataSm:
        take(pdu, readData);
        break;
      case commands.unbind:
        respond(pdu, statuses.ESME_ROK);
        leave("the peer unbound");
        break;
      case commands.outbind:
      case commands.alertNotification:
        break;
      default:
        respond(pdu, statuses.ESME_RINVCMDID, emptyBody, commands.genericNack);
    }
  }

  function take(pdu: Pdu, read: (body: Buffer) => Deliver | undefined): void {
    // deliver_sm_resp and data_sm_resp have an empty message_id (4.6.2, 4.7.2).
    const reply = (status: number) => respond(pdu, status, cString(""));
    if (phase === "bound") events.deliver(read(pdu.body), reply);
    else reply(phase === "opening" ? statuses.ESME_RINVBNDSTS : statuses.ESME_RX_T_APPN);
  }

  /** Sends enquire_link after `enquireLinkAfter` without data from the peer. */
  function watch(ms: number): void {
    cancelProbe = clock.after(
      ms,
      () => {
        const silence = clock.now() - heardAt;
        if (silence >= enquireLinkAfter) probe();
        watch(Math.max(1, silence >= enquireLinkAfter ? enquireLinkAfter : enquireLinkAfter - silence));
      },
      "background",
    );
  }

  function probe(): void {
    if (probing || phase !== "bound") return;
    probing = true;
    const askedAt = clock.now();
    request(commands.enquireLink, emptyBody, (answer) => {
      probing = false;
      // If reading paused, the response may be among the unread data.
      const held = socket.isPaused() || heldAt >= askedAt;
      if ("lost" in answer && !held) destroy("the peer did not respond to enquire_link");
    });
  }

  return {
    /** Whether requests can be written. */
    bound: () => phase === "bound",
    request,
    readOn,
    /** Unbinds; `done` is called when the session has ended. */
    unbind(done: () => void) {
      if (phase !== "bound") {
        destroy("closed");
        return done();
      }
      phase = "unbinding";
      request(commands.unbind, emptyBody, () => {
        leave("unbound");
        done();
      });
    },
    destroy,
  };
}
