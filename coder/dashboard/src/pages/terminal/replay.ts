// The replay after a reload or a lost connection. The agent first sends the terminal's recent output.
// Queries in it were answered before: a second answer would be typed at the prompt. Agents of this
// project leave the queries out; agents of other versions do not.

/** Output an agent replays at most, in bytes. */
const REPLAY_BYTES = 64 << 10;
/** A pause of this length ends the replay. */
const PAUSE_MS = 150;

// What xterm.js sends by itself: DA, DSR, CPR, DECRPM, window and colour reports, DECRQSS.
const ANSWERS = /^(?:\x1b\[[?>=]?[\d;]*(?:[cnRtu]|\$y)|\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\))+$/;

/** Whether the terminal itself sent `data`, as the answer to a query. */
export const isAnswer = (data: string): boolean => ANSWERS.test(data);

/** Return `chunk` without the bytes of a UTF-8 character whose first byte is missing. */
export function fromWholeCharacter(chunk: Uint8Array): Uint8Array {
  let start = 0;
  while (start < 3 && start < chunk.length && ((chunk[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return chunk.subarray(start);
}

/** One replay: from the connection until a pause or the size limit, and until all of it is parsed. */
export class Replay {
  private bytes = 0;
  private unparsed = 0;
  private over: boolean;
  private timer: number | undefined;

  /** `expected`: whether the terminal existed before this connection. */
  constructor(expected: boolean) {
    this.over = !expected;
    if (expected) this.wait();
  }

  /** Whether output that is parsed now may be a replay. */
  get active(): boolean {
    return !this.over || this.unparsed > 0;
  }

  /** Count a received chunk. Return the chunk to write, and a callback for when it is parsed. */
  receive(chunk: Uint8Array): [Uint8Array, (() => void) | undefined] {
    if (this.over) return [chunk, undefined];
    const whole = this.bytes === 0 ? fromWholeCharacter(chunk) : chunk;
    this.bytes += chunk.length;
    this.unparsed += 1;
    if (this.bytes >= REPLAY_BYTES) this.end();
    else this.wait();
    return [whole, () => (this.unparsed -= 1)];
  }

  end(): void {
    window.clearTimeout(this.timer);
    this.over = true;
  }

  private wait(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.end(), PAUSE_MS);
  }
}
