/** Runs what it is given when what has arrived meanwhile was read. */
export const nextTurn: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;
