// Search in a terminal's output: incremental while typing, Enter for the next match, Shift+Enter
// for the previous one, Escape to close.
import type { ISearchOptions, SearchAddon } from "@xterm/addon-search";
import { ChevronDown, ChevronUp, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { IconButton } from "../../ui/Button";
import { INPUT } from "../../ui/forms/Field";
import { keyOf } from "../../ui/keys";

interface TerminalSearchProps {
  search: Pick<
    SearchAddon,
    "findNext" | "findPrevious" | "clearDecorations" | "onDidChangeResults"
  >;
  /** Match highlighting in the theme's colours. */
  marks: () => NonNullable<ISearchOptions["decorations"]>;
  onClose: () => void;
}

export function TerminalSearch({ search, marks, onClose }: TerminalSearchProps) {
  const [text, setText] = useState("");
  const [results, setResults] = useState<{ index: number; count: number } | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    const subscription = search.onDidChangeResults(({ resultIndex, resultCount }) =>
      setResults({ index: resultIndex, count: resultCount }),
    );
    return () => {
      subscription.dispose();
      search.clearDecorations();
    };
  }, [search]);
  const find = (term: string, direction: "findNext" | "findPrevious", incremental = false) => {
    if (term !== "") search[direction](term, { incremental, decorations: marks() });
    else {
      search.clearDecorations();
      setResults(null);
    }
  };
  const message =
    text === "" || results === null
      ? ""
      : results.count === 0
        ? "No results"
        : results.index < 0
          ? `more than ${results.count}`
          : `${results.index + 1} of ${results.count}`;
  return (
    <div
      role="search"
      className="flex items-center gap-1 border-b border-line bg-surface px-3 py-1.5"
    >
      <input
        ref={field}
        aria-label="Search the terminal"
        className={`${INPUT} h-8.5 max-w-80`}
        value={text}
        placeholder="Search output"
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => {
          setText(event.target.value);
          find(event.target.value, "findNext", true);
        }}
        onKeyDown={(event) => {
          const key = keyOf(event);
          if (key === "Enter") {
            event.preventDefault();
            find(text, event.shiftKey ? "findPrevious" : "findNext");
          }
          if (key === "Escape") {
            event.preventDefault();
            onClose();
          }
        }}
      />
      <IconButton
        size="sm"
        label="Previous match"
        disabled={text === ""}
        onClick={() => find(text, "findPrevious")}
      >
        <ChevronUp />
      </IconButton>
      <IconButton
        size="sm"
        label="Next match"
        disabled={text === ""}
        onClick={() => find(text, "findNext")}
      >
        <ChevronDown />
      </IconButton>
      <span role="status" className="text-sm text-muted tabular-nums">
        {message}
      </span>
      <IconButton size="sm" label="Close search" className="ml-auto" onClick={onClose}>
        <X />
      </IconButton>
    </div>
  );
}
