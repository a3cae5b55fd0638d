// Terminal lines as spans: colours and weights are kept, every other control sequence is dropped.
// The output is plain text and the dashboard's class names, so that no program output can become
// markup.
export interface Span {
  text: string;
  className: string;
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
// CSI sequences, OSC up to BEL or ST, other two-character escapes, and stray control characters
// except tab.

const CONTROL =
  /\x1b\[([0-9;:]*)([ -/]*[@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]?|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

export function ansiSpans(line: string): Span[] {
  // Text overwritten after a carriage return was progress output; only the last state of the line
  // counts.
  const text = line.replace(/[\r\n]+$/, "");
  const shown = text.slice(text.lastIndexOf("\r") + 1);
  const spans: Span[] = [];
  let state = NONE;
  let from = 0;
  for (const match of shown.matchAll(CONTROL)) {
    push(spans, shown.slice(from, match.index), state);
    from = match.index + match[0].length;
    if (match[2] === "m") state = styled(state, match[1] ?? "");
  }
  push(spans, shown.slice(from), state);
  return spans;
}

/** The line without any control sequence, for searching and copying. */
export function plainText(line: string): string {
  return ansiSpans(line)
    .map((span) => span.text)
    .join("");
}

interface Style {
  colour: number | null;
  bold: boolean;
  faint: boolean;
  underline: boolean;
  italic: boolean;
}
const NONE: Style = { colour: null, bold: false, faint: false, underline: false, italic: false };

function styled(old: Style, codes: string): Style {
  let state = old;
  const numbers = codes.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0;
    if (code === 38 || code === 48) {
      at += numbers[at + 1] === 5 ? 2 : 4; // 256 colours and true colours keep the text's own colour
    } else state = sgr(state, code);
  }
  return state;
}

function sgr(state: Style, code: number): Style {
  if (code === 0) return NONE;
  if (code === 1) return { ...state, bold: true };
  if (code === 2) return { ...state, faint: true };
  if (code === 3) return { ...state, italic: true };
  if (code === 4) return { ...state, underline: true };
  if (code === 22) return { ...state, bold: false, faint: false };
  if (code === 23) return { ...state, italic: false };
  if (code === 24) return { ...state, underline: false };
  if (code === 39) return { ...state, colour: null };
  if (code >= 30 && code <= 37) return { ...state, colour: code - 30 };
  if (code >= 90 && code <= 97) return { ...state, colour: code - 90 };
  return state;
}

function push(spans: Span[], text: string, state: Style) {
  if (text === "") return;
  const names = [];
  if (state.colour !== null) names.push(`ansi-${COLOURS[state.colour]}`);
  if (state.bold) names.push("font-semibold");
  if (state.faint) names.push("opacity-75");
  if (state.underline) names.push("underline");
  if (state.italic) names.push("italic");
  spans.push({ text, className: names.join(" ") });
}
