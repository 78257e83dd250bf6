import * as z from "zod";

/** The ways in which a code reaches a phone. */
export const channels = ["sms", "whatsapp", "telegram", "viber", "rcs", "voice"] as const;
export type Channel = (typeof channels)[number];

/** The channel that a request wishes for (docs/contract.md#channel). */
export const WishedChannel = z.enum(channels, `must be ${channels.slice(0, -1).join(", ")} or ${channels.at(-1)}`).optional();
