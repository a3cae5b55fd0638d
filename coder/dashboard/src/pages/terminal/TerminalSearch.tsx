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
  const [found, setFound] = useState<{ index: number; count: number } | null>(null);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    const told = search.onDidChangeResults(({ resultIndex, resultCount }) =>
      setFound({ index: resultIndex, count: resultCount }),
    );
    return () => {
      told.dispose();
      search.clearDecorations();
    };
  }, [search]);
  const look = (term: string, way: "findNext" | "findPrevious", incremental = false) => {
    if (term !== "") search[way](term, { incremental, decorations: marks() });
    else {
      search.clearDecorations();
      setFound(null);
    }
  };
  const said =
    text === "" || found === null
      ? ""
      : found.count === 0
        ? "No results"
        : found.index < 0
          ? `more than ${found.count}`
          : `${found.index + 1} of ${found.count}`;
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
          look(event.target.value, "findNext", true);
        }}
        onKeyDown={(event) => {
          const key = keyOf(event);
          if (key === "Enter") {
            event.preventDefault();
            look(text, event.shiftKey ? "findPrevious" : "findNext");
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
        onClick={() => look(text, "findPrevious")}
      >
        <ChevronUp />
      </IconButton>
      <IconButton
        size="sm"
        label="Next match"
        disabled={text === ""}
        onClick={() => look(text, "findNext")}
      >
        <ChevronDown />
      </IconButton>
      <span role="status" className="text-sm text-muted tabular-nums">
        {said}
      </span>
      <IconButton size="sm" label="Close search" className="ml-auto" onClick={onClose}>
        <X />
      </IconButton>
    </div>
  );
}
