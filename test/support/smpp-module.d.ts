/** The part of npm `smpp`, which has no types, that the tests use. */
declare module "smpp" {
  import type { Server, Socket } from "node:net";

  interface Message {
    readonly message?: string | Buffer;
    readonly udh?: readonly Buffer[];
  }
  export interface PeerPdu {
    readonly command: string;
    readonly command_status: number;
    readonly sequence_number: number;
    readonly system_id?: string;
    readonly password?: string;
    readonly system_type?: string;
    readonly interface_version?: number;
    readonly service_type?: string;
    readonly source_addr_ton?: number;
    readonly source_addr_npi?: number;
    readonly source_addr?: string;
    readonly dest_addr_ton?: number;
    readonly dest_addr_npi?: number;
    readonly destination_addr?: string;
    readonly esm_class?: number;
    readonly validity_period?: string | Date;
    readonly registered_delivery?: number;
    readonly data_coding?: number;
    readonly short_message?: Message;
    readonly message_payload?: Message;
    readonly message_id?: string;
    readonly sar_msg_ref_num?: number;
    readonly sar_total_segments?: number;
    readonly sar_segment_seqnum?: number;
    /** An unknown parameter, by its tag. */
    readonly [tag: number]: Buffer | undefined;
    response(fields?: Record<string, unknown>): PeerPdu;
    toBuffer(): Buffer;
  }
  export interface PeerSession {
    readonly socket: Socket;
    on(event: "pdu", listener: (pdu: PeerPdu) => void): void;
    on(event: "error", listener: (error: Error) => void): void;
    send(pdu: PeerPdu): boolean;
    deliver_sm(fields: Record<string, unknown>, answer: (pdu: PeerPdu) => void): boolean;
    data_sm(fields: Record<string, unknown>, answer: (pdu: PeerPdu) => void): boolean;
    enquire_link(fields: Record<string, unknown>, answer: (pdu: PeerPdu) => void): boolean;
    unbind(fields: Record<string, unknown>, answer: (pdu: PeerPdu) => void): boolean;
    close(): void;
    destroy(): void;
  }
  const smpp: {
    createServer(options: Record<string, unknown>, listener: (session: PeerSession) => void): Server;
    PDU: { new (command: string, fields: Record<string, unknown>): PeerPdu; new (octets: Buffer): PeerPdu };
  };
  export default smpp;
}
