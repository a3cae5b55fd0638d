// All keyboard shortcuts and the palette's commands. Opens with "?".
import { setSingleKeys, useSingleKeys } from "../../features/appearance/single-keys";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Checkbox } from "../../ui/forms/Toggle";
import { MAIN } from "./nav";

const KEYS: readonly (readonly [keys: string, effect: string])[] = [
  ["Ctrl K or ⌘ K", "Search and commands"],
  ["/", "Search this page"],
  ["↓", "Go from the search to the first row"],
  ["j, k", "Go to the next or previous row of a table"],
  ...MAIN.map(({ key, text }) => [`g ${key}`, `Go to ${text}`] as const),
  ["g i", "Go to the inbox"],
  ["?", "Show this list"],
  ["Ctrl Shift F or ⌘ F", "Search the terminal (in a terminal)"],
  ["Ctrl Shift L", "Leave the terminal (in a terminal)"],
  ["Ctrl Enter or ⌘ Enter", "Build (in the template editor)"],
  ["Esc, then Tab", "Leave the code editor (in a code editor)"],
];
const COMMANDS: readonly (readonly [words: string, effect: string])[] = [
  ["start NAME, stop NAME, restart NAME", "Build the workspace"],
  ["terminal NAME", "Open its terminal"],
  ["extend 2h NAME", "Move its autostop"],
  ["copy ssh NAME", "Copy its SSH command"],
  ["new from TEMPLATE", "Create a workspace"],
  ["switch to dark, light or system", "Change the theme"],
  ["sign out", "End the session"],
];

export function ShortcutSheet({ onClose }: { onClose: () => void }) {
  const singleKeys = useSingleKeys();
  return (
    <Dialog
      open
      onClose={onClose}
      title="Keyboard shortcuts"
      actions={<Button onClick={onClose}>Close</Button>}
    >
      <List label="Shortcuts" items={KEYS} />
      <div className="mt-3">
        <Checkbox
          label="Use single keys as shortcuts"
          hint="Turn off if speech input types them unintentionally. Kept in this browser; the user menu has this list."
          checked={singleKeys}
          onChange={setSingleKeys}
        />
      </div>
      <h3 className="mt-4 mb-1 font-medium">Commands in the search (Ctrl K)</h3>
      <List label="Commands" items={COMMANDS} />
    </Dialog>
  );
}

function List({ label, items }: { label: string; items: typeof KEYS }) {
  return (
    <dl aria-label={label} className="flex flex-col gap-1 text-sm">
      {items.map(([keys, effect]) => (
        <div key={keys} className="flex flex-wrap justify-between gap-x-4">
          <dt className="font-mono text-text">{keys}</dt>
          <dd className="text-muted">{effect}</dd>
        </div>
      ))}
    </dl>
  );
}
