import { type Address, addressField, cString, parameter } from "./pdu.js";

export interface Submit {
  readonly serviceType: string;
  readonly source: Address;
  readonly destination: Address;
  readonly esmClass: number;
  /** In the format of 7.1; empty for the message centre's default. */
  readonly validityPeriod: string;
  /** 1: request a receipt for the final outcome; 0: none. */
  readonly registeredDelivery: 0 | 1;
  readonly dataCoding: number;
  /** Up to 254 octets. */
  readonly shortMessage: Buffer;
  /** Optional parameters by tag, up to 65,535 octets each. */
  readonly parameters: ReadonlyMap<number, Buffer>;
}

/** Builds the body of submit_sm (4.4.1). */
export function submitBody(submit: Submit): Buffer {
  return Buffer.concat([
    cString(submit.serviceType),
    addressField(submit.source),
    addressField(submit.destination),
    // protocol_id, priority_flag: none; schedule_delivery_time: at once.
    Buffer.of(submit.esmClass, 0, 0, 0),
    cString(submit.validityPeriod),
    // replace_if_present_flag and sm_default_msg_id: none.
    Buffer.of(submit.registeredDelivery, 0, submit.dataCoding, 0, submit.shortMessage.length),
    submit.shortMessage,
    ...Array.from(submit.parameters, ([tag, value]) => parameter(tag, value)),
  ]);
}
