// Keys that the keyboards of phones and tablets lack.
import { buttonClass } from "../../ui/Button";

export interface TerminalKey {
  label: string;
  /** The name for screen readers. */
  name: string;
  /** The bytes of the key; an arrow's depend on the terminal's cursor key mode (DECCKM). */
  data: (applicationCursor: boolean) => string;
}

const plain = (label: string, name: string, data: string): TerminalKey => ({
  label,
  name,
  data: () => data,
});
const arrow = (label: string, name: string, final: string): TerminalKey => ({
  label,
  name,
  data: (applicationCursor) => `\x1b${applicationCursor ? "O" : "["}${final}`,
});

export const KEYS: readonly TerminalKey[] = [
  plain("Esc", "Escape", "\x1b"),
  plain("Tab", "Tab", "\t"),
  plain("^C", "Control C", "\x03"),
  plain("^D", "Control D", "\x04"),
  plain("^Z", "Control Z", "\x1a"),
  plain("^R", "Control R", "\x12"),
  arrow("←", "Left", "D"),
  arrow("↑", "Up", "A"),
  arrow("↓", "Down", "B"),
  arrow("→", "Right", "C"),
];

export function TerminalKeys({ onKey }: { onKey: (key: TerminalKey) => void }) {
  return (
    <div
      role="toolbar"
      aria-label="Terminal keys"
      className="flex gap-1 overflow-x-auto border-t border-line bg-surface p-1.5 not-pointer-coarse:hidden"
    >
      {KEYS.map((key) => (
        <button
          key={key.name}
          type="button"
          aria-label={key.name}
          className={buttonClass("secondary", "md", "min-w-10 flex-1 px-0! font-mono")}
          // A focused button would close the keyboard on the screen.
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onKey(key)}
        >
          {key.label}
        </button>
      ))}
    </div>
  );
}
