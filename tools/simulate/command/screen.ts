/** Prints the table to stdout, and the progress to stderr. */
export interface Screen {
  print(text: string): void;
  /** Reports how much of a play has been played, from 0 to 1. */
  progress(play: number, done: number): void;
  ended(play: number): void;
  close(): void;
}

/** What the screen knows about a play. `size`: its requests, about. */
export interface Sized {
  readonly id: string;
  readonly size: number;
}

/** On a terminal: a status line that is overwritten. Elsewhere: a line each time that a scenario ends. */
export function screenOf(plays: readonly Sized[], out: NodeJS.WriteStream, err: NodeJS.WriteStream): Screen {
  const done = plays.map(() => 0);
  const playing = new Set<number>();
  let ended = 0;
  const clear = () => err.isTTY && err.write("\r\x1b[K");
  const draw = () => {
    if (!err.isTTY) return;
    const now = [...playing].map((play) => plays[play]?.id).join(", ");
    err.write(`\r\x1b[K${`${progressText(plays, done, ended)}${now && ` · ${now}`}`.slice(0, (err.columns ?? 80) - 1)}`);
  };
  return {
    print(text) {
      clear();
      out.write(`${text}\n`);
      draw();
    },
    progress(play, share) {
      if (done[play] === 1) return;
      playing.add(play);
      done[play] = share;
      draw();
    },
    ended(play) {
      playing.delete(play);
      done[play] = 1;
      ended++;
      if (err.isTTY) draw();
      else err.write(`${progressText(plays, done, ended)} · ${plays[play]?.id}\n`);
    },
    close: () => void clear(),
  };
}

/** `40 % · 5 of 13 played`. The percentage is that of the work, which differs between scenarios. */
export function progressText(plays: readonly Sized[], done: readonly number[], ended: number): string {
  let all = 0;
  let played = 0;
  for (const [index, { size }] of plays.entries()) {
    all += size;
    played += size * (done[index] ?? 0);
  }
  return `${Math.floor((100 * played) / all)} % · ${ended} of ${plays.length} played`;
}
