import type { Access } from "../access/access.js";
import type { Messages } from "../messages/messages.js";

/** What the operations are made of. */
export interface Context extends Access, Messages {}
