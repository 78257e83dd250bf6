/** Runs a function after pending input has been read. */
export const nextTurn: (run: () => void) => unknown = globalThis.setImmediate ?? setTimeout;
