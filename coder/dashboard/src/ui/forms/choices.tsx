// Options with a search: which match what was typed, which one the keyboard has moved to, and the list.
import { Check } from "lucide-react";
import {
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
} from "react";

import { cx } from "../cx";
import { keyOf } from "../keys";

export interface Choice {
  value: string;
  text: string;
  hint?: string | undefined;
  icon?: ReactNode;
}

const SHOWN = 100; // the number of options shown; the search reaches the rest

interface ChoicesOptions {
  id: string;
  value: string;
  options: readonly Choice[];
  onChange: (value: string) => void;
  /** Called with the typed text if the options come from the server. */
  onSearch?: ((text: string) => void) | undefined;
}

export interface Choices {
  text: string;
  search: (text: string) => void;
  /** Empties the field. The options stay: a choice found by the server must remain among them. */
  clear: () => void;
  onKey: (event: KeyboardEvent) => void;
  /** The id of the option that Enter would select. */
  active: string | undefined;
  at: number;
  mark: (index: number) => void;
  shown: readonly Choice[];
  /** Number of matches. */
  count: number;
  list: RefObject<HTMLUListElement | null>;
}

function isMatch(option: Choice, text: string): boolean {
  return `${option.text} ${option.value} ${option.hint ?? ""}`
    .toLowerCase()
    .includes(text.trim().toLowerCase());
}

export function useChoices({ id, value, options, onChange, onSearch }: ChoicesOptions): Choices {
  const [text, setText] = useState("");
  /** The option that the user has moved to; null for none yet. */
  const [marked, setMarked] = useState<number | null>(() => {
    const position = options.findIndex((option) => option.value === value);
    return position < 0 ? null : position;
  });
  const list = useRef<HTMLUListElement>(null);
  const results = useMemo(() => {
    if (text.trim() === "") return options;
    const matching = options.filter((option) => isMatch(option, text));
    // The server matches more than the displayed text, such as a full name: its results come after the
    // visible matches.
    return onSearch
      ? [...matching, ...options.filter((option) => !matching.includes(option))]
      : matching;
  }, [options, text, onSearch]);
  const shown = results.slice(0, SHOWN);
  // While the answer to the typed text is pending, the list belongs to the previous text: Enter
  // selects nothing.
  const at = marked ?? (text.trim() === "" || (shown[0] && isMatch(shown[0], text)) ? 0 : -1);
  const move = (to: number) => {
    const next = Math.min(Math.max(0, to), shown.length - 1);
    setMarked(next);
    list.current?.children[next]?.scrollIntoView({ block: "nearest" });
  };
  const onKey = (event: KeyboardEvent) => {
    const pressed = keyOf(event);
    if (pressed === "ArrowDown") move(at + 1);
    else if (pressed === "ArrowUp") move(at - 1);
    else if (pressed === "Enter") {
      const option = shown[at];
      if (option) onChange(option.value);
    } else return;
    event.preventDefault();
  };
  return {
    text,
    search: (typed) => {
      setText(typed);
      setMarked(null);
      onSearch?.(typed);
    },
    clear: () => {
      setText("");
      setMarked(null);
    },
    onKey,
    active: shown[at] ? `${id}-${at}` : undefined,
    at,
    mark: setMarked,
    shown,
    count: results.length,
    list,
  };
}

export function ChoiceOptions({
  id,
  value,
  choices,
  onChange,
  empty = "No results",
}: {
  id: string;
  value: string;
  choices: Choices;
  onChange: (value: string) => void;
  empty?: string;
}) {
  const { shown, at, mark, count, list } = choices;
  return (
    <>
      <ul
        id={`${id}-list`}
        ref={list}
        role="listbox"
        aria-label="Options"
        className="max-h-64 overflow-y-auto p-1"
      >
        {shown.map((option, index) => (
          // The keyboard works through the search field, as in the combobox pattern.
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events
          <li
            key={option.value}
            id={`${id}-${index}`}
            role="option"
            aria-selected={option.value === value}
            onClick={() => onChange(option.value)}
            onMouseMove={() => mark(index)}
            className={cx(
              "flex cursor-pointer items-center gap-2 rounded-md px-2.5 py-1.5",
              index === at && "marked",
            )}
          >
            {option.icon}
            <span className="min-w-0 flex-1">
              <span className="block truncate">{option.text}</span>
              {option.hint ? (
                <span className="block truncate text-sm text-muted">{option.hint}</span>
              ) : null}
            </span>
            {option.value === value ? (
              <Check className="size-4 shrink-0 text-accent-text" aria-hidden="true" />
            ) : null}
          </li>
        ))}
      </ul>
      {shown.length === 0 ? (
        <p role="status" className="px-3 pb-3 text-sm text-muted">
          {empty}
        </p>
      ) : null}
      {count > SHOWN ? (
        <p className="border-t border-line px-3 py-1.5 text-sm text-muted">
          {(count - SHOWN).toLocaleString()} more: type to narrow the list.
        </p>
      ) : null}
    </>
  );
}
