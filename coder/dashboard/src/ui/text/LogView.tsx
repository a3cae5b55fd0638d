// A long log: only visible lines are in the DOM, so that twenty thousand lines scroll like twenty. Follows the newest
// line unless the reader has scrolled up; the search highlights matches and steps through them.
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ChevronDown, ChevronUp, CircleX, Search, TriangleAlert, X } from "lucide-react";
import { useDeferredValue, useEffect, useMemo, useRef, useState, type ReactNode } from "react";

import { ansiSpans, plainText } from "./ansi";
import { Button, IconButton } from "../Button";
import { INPUT } from "../forms/Field";
import { cx } from "../cx";
import { keyOf } from "../keys";
import { timeOfDay } from "../../lib/time";
import { counted } from "../../lib/words";

export interface LogLine {
  id: number | string;
  text: string;
  level?: string;
  at?: string;
  /** A heading above the line: the stage of a build, the source of an agent's line. */
  stage?: string;
}

interface LogViewProps {
  lines: readonly LogLine[];
  label: string;
  testId?: string;
  empty?: string;
  height?: string;
  steady?: boolean; // as high from the start: what stands below does not move when lines arrive
  actions?: ReactNode;
  times?: boolean;
}

const ROW_PX = 20;
const NEAR_PX = 40;
const LEVELS: Record<string, string> = {
  error: "text-bad",
  warn: "text-warn",
  debug: "text-muted",
  trace: "text-muted",
};
/** In the margin before the line: colour alone is not enough for many users. */
const MARKS: Record<string, readonly [typeof CircleX, string]> = {
  error: [CircleX, "Error"],
  warn: [TriangleAlert, "Warning"],
};

export function LogView({
  lines,
  label,
  testId,
  empty = "No log lines yet.",
  height = "22rem",
  steady = false,
  actions,
  times = true,
}: LogViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const search = useSearch(lines);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
    getItemKey: (index) => lines[index]?.id ?? index,
  });
  const last = lines[lines.length - 1]?.id;
  const totalHeight = rows.getTotalSize(); // grows while lines turn out to wrap
  useEffect(() => {
    if (atEnd && lines.length > 0 && search.current === null)
      rows.scrollToIndex(lines.length - 1, { align: "end" });
  }, [last, lines.length, totalHeight, atEnd, rows, search]);
  useEffect(() => {
    if (search.current !== null) rows.scrollToIndex(search.current, { align: "center" });
  }, [search, rows]);
  const top = useRef(0);
  // Only scrolling up leaves the end: lines taller than estimated also move it away from a reader who
  // stays there.
  const scrolled = () => {
    const element = box.current;
    if (!element) return;
    if (element.scrollTop + element.clientHeight >= element.scrollHeight - NEAR_PX) setAtEnd(true);
    else if (element.scrollTop < top.current) setAtEnd(false);
    top.current = element.scrollTop;
  };
  return (
    <div className="relative overflow-hidden rounded-lg border border-line bg-inset">
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-2 py-1.5">
        <SearchField search={search} label={label} />
        <span className="ml-auto flex items-center gap-1.5 text-sm text-muted">
          <span className="tabular-nums">{counted(lines.length, "line")}</span>
          {actions}
        </span>
      </div>
      <div
        ref={box}
        role="log"
        aria-label={label}
        data-testid={testId}
        tabIndex={0}
        onScroll={scrolled}
        className="overflow-auto px-3 py-2 font-mono text-[0.78rem] leading-5"
        style={steady ? { height } : { maxHeight: height }}
      >
        {lines.length === 0 ? <p className="text-muted">{empty}</p> : null}
        <div className="relative w-full" style={{ height: totalHeight }}>
          <div
            className="absolute top-0 left-0 w-full"
            style={{ transform: `translateY(${rows.getVirtualItems()[0]?.start ?? 0}px)` }}
          >
            {rows.getVirtualItems().map((item) => {
              const line = lines[item.index];
              if (!line) return null;
              return (
                <div key={item.key} data-index={item.index} ref={rows.measureElement}>
                  <Line
                    line={line}
                    stage={line.stage !== undefined && line.stage !== lines[item.index - 1]?.stage}
                    times={times}
                    needle={search.needle}
                    current={search.current === item.index}
                  />
                </div>
              );
            })}
          </div>
        </div>
      </div>
      {atEnd || lines.length === 0 ? null : (
        <Button
          size="sm"
          className="absolute right-4 bottom-3 shadow-raised"
          icon={<ArrowDown />}
          onClick={() => {
            setAtEnd(true);
            rows.scrollToIndex(lines.length - 1, { align: "end" });
          }}
        >
          Newest
        </Button>
      )}
    </div>
  );
}

export function Line({
  line,
  stage,
  times,
  needle,
  current,
}: {
  line: LogLine;
  stage: boolean;
  times: boolean;
  needle: string;
  current: boolean;
}) {
  const spans = useMemo(() => ansiSpans(line.text), [line.text]);
  const [Mark, meaning] = MARKS[line.level ?? ""] ?? [];
  return (
    <>
      {stage ? (
        <div className="pt-1.5 pb-0.5 font-sans text-sm font-semibold">{line.stage}</div>
      ) : null}
      {line.text === "" && stage ? null : (
        <div
          className={cx(
            "log-line relative flex gap-3",
            LEVELS[line.level ?? ""],
            current && "bg-selected",
            line.level,
          )}
          data-level={line.level}
        >
          {Mark ? (
            <Mark
              className="absolute top-1.25 -left-2.75 size-2.5"
              role="img"
              aria-label={meaning}
            />
          ) : null}
          {times && line.at ? (
            <time dateTime={line.at} className="shrink-0 text-faint select-none max-sm:hidden">
              {timeOfDay(line.at)}
            </time>
          ) : null}
          <span className="min-w-0 whitespace-pre-wrap [overflow-wrap:anywhere]">
            {spans.map((span, index) => (
              <span key={index} className={span.className || undefined}>
                {needle ? marked(span.text, needle) : span.text}
              </span>
            ))}
          </span>
        </div>
      )}
    </>
  );
}

function marked(text: string, needle: string): ReactNode {
  const at = text.toLowerCase().indexOf(needle);
  if (at < 0) return text;
  const end = at + needle.length;
  return (
    <>
      {text.slice(0, at)}
      <mark className="bg-warn-soft text-text outline outline-warn/50">{text.slice(at, end)}</mark>
      {marked(text.slice(end), needle)}
    </>
  );
}

interface SearchState {
  text: string;
  setText: (text: string) => void;
  needle: string;
  matches: readonly number[];
  /** The index of the current match. */
  current: number | null;
  step: (step: number) => void;
  at: number;
}

function useSearch(lines: readonly LogLine[]): SearchState {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const needle = useDeferredValue(text.trim().toLowerCase());
  const matches = useMemo(
    () =>
      needle === ""
        ? []
        : lines.flatMap((line, index) =>
            plainText(line.text).toLowerCase().includes(needle) ? [index] : [],
          ),
    [lines, needle],
  );
  return useMemo(() => {
    const currentIndex =
      matches.length === 0 ? 0 : ((at % matches.length) + matches.length) % matches.length;
    return {
      text,
      needle,
      matches,
      at: currentIndex,
      setText: (next: string) => {
        setText(next);
        setAt(0);
      },
      current: matches[currentIndex] ?? null,
      step: (by: number) => setAt(currentIndex + by),
    };
  }, [text, needle, matches, at]);
}

function SearchField({ search, label }: { search: SearchState; label: string }) {
  return (
    <div className="flex min-w-0 flex-1 items-center gap-1">
      <div className="relative w-44 min-w-24 shrink">
        <Search
          className="pointer-events-none absolute top-1/2 left-2 size-3.5 -translate-y-1/2 text-faint"
          aria-hidden="true"
        />
        <input
          type="search"
          aria-label={`Search in ${label.toLowerCase()}`}
          placeholder="Search"
          value={search.text}
          onChange={(event) => search.setText(event.target.value)}
          onKeyDown={(event) => {
            const key = keyOf(event);
            if (key === "Enter") search.step(event.shiftKey ? -1 : 1);
            if (key === "Escape") search.setText("");
          }}
          className={cx(INPUT, "h-7 pl-7 text-sm [&::-webkit-search-cancel-button]:hidden")}
        />
      </div>
      {search.text === "" ? null : (
        <>
          <span className="text-sm text-muted tabular-nums" role="status">
            {search.matches.length === 0
              ? "No results"
              : `${search.at + 1}/${search.matches.length}`}
          </span>
          <IconButton label="Previous match" size="sm" onClick={() => search.step(-1)}>
            <ChevronUp />
          </IconButton>
          <IconButton label="Next match" size="sm" onClick={() => search.step(1)}>
            <ChevronDown />
          </IconButton>
          <IconButton label="Close search" size="sm" onClick={() => search.setText("")}>
            <X />
          </IconButton>
        </>
      )}
    </div>
  );
}
