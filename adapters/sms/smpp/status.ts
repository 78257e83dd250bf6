/** Values of command_status (SMPP 3.4, 5.1.3) that this client sends or handles specially. */
export const statuses = {
  ok: 0x00,
  invalidLength: 0x02,
  invalidCommand: 0x03,
  invalidBindStatus: 0x04,
  alreadyBound: 0x05,
  systemError: 0x08,
  bindFailed: 0x0d,
  queueFull: 0x14,
  throttled: 0x58,
  temporaryReceiverError: 0x64,
  unknownError: 0xff,
} as const;

const names: Readonly<Record<number, string>> = {
  0x01: "ESME_RINVMSGLEN",
  0x02: "ESME_RINVCMDLEN",
  0x03: "ESME_RINVCMDID",
  0x04: "ESME_RINVBNDSTS",
  0x05: "ESME_RALYBND",
  0x06: "ESME_RINVPRTFLG",
  0x07: "ESME_RINVREGDLVFLG",
  0x08: "ESME_RSYSERR",
  0x0a: "ESME_RINVSRCADR",
  0x0b: "ESME_RINVDSTADR",
  0x0c: "ESME_RINVMSGID",
  0x0d: "ESME_RBINDFAIL",
  0x0e: "ESME_RINVPASWD",
  0x0f: "ESME_RINVSYSID",
  0x14: "ESME_RMSGQFUL",
  0x15: "ESME_RINVSERTYP",
  0x43: "ESME_RINVESMCLASS",
  0x44: "ESME_RCNTSUBDL",
  0x45: "ESME_RSUBMITFAIL",
  0x48: "ESME_RINVSRCTON",
  0x49: "ESME_RINVSRCNPI",
  0x50: "ESME_RINVDSTTON",
  0x51: "ESME_RINVDSTNPI",
  0x53: "ESME_RINVSYSTYP",
  0x54: "ESME_RINVREPFLAG",
  0x55: "ESME_RINVNUMMSGS",
  0x58: "ESME_RTHROTTLED",
  0x61: "ESME_RINVSCHED",
  0x62: "ESME_RINVEXPIRY",
  0x63: "ESME_RINVDFTMSGID",
  0x64: "ESME_RX_T_APPN",
  0x65: "ESME_RX_P_APPN",
  0x66: "ESME_RX_R_APPN",
  0xc0: "ESME_RINVOPTPARSTREAM",
  0xc1: "ESME_ROPTPARNOTALLWD",
  0xc2: "ESME_RINVPARLEN",
  0xc3: "ESME_RMISSINGOPTPARAM",
  0xc4: "ESME_RINVOPTPARAMVAL",
  0xfe: "ESME_RDELIVERYFAILURE",
  0xff: "ESME_RUNKNOWNERR",
};

/**
 * The specification's name of a command_status with its value, for example `ESME_RINVDSTADR (0x0000000B)`; only the
 * value if it has no name.
 */
export function statusName(status: number): string {
  const value = `0x${status.toString(16).toUpperCase().padStart(8, "0")}`;
  const name = names[status];
  return name === undefined ? value : `${name} (${value})`;
}
