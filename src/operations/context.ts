import type { Access } from "../access/access.js";
import type { Messages } from "../messages/messages.js";

/** The parts of the operations. */
export interface Context extends Access, Messages {}
