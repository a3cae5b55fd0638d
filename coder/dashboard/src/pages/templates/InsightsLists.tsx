// Lists of a template's insights, and their placeholders while loading.
import { useState, type ReactNode } from "react";

import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Skeleton } from "../../ui/Loading";

const SHOWN = 10;

/**
 * "Nothing in this period" needs an answer: it is not shown while loading, before a request, or
 * after a failure.
 */
type Known = "known" | "asked" | "unknown" | undefined;

export function Unknown() {
  return <p className="text-muted">No data for this period.</p>;
}

export function Placeholder({ state }: { state: Known }) {
  return state === "asked" ? <SkeletonLines /> : <Unknown />;
}

function SkeletonLines() {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-2">
      {[1, 2, 3].map((line) => (
        <Skeleton key={line} className="h-6" />
      ))}
    </div>
  );
}

export function People({
  rows,
  state,
  square = false,
}: {
  state: Known;
  rows: readonly { id: string; name: string; picture?: string | undefined; value: string }[];
  square?: boolean;
}) {
  if (state !== "known") return <Placeholder state={state} />;
  if (rows.length === 0) return <p className="text-muted">No activity in this period.</p>;
  return (
    <ExpandableList
      all={rows}
      shown={SHOWN}
      className="flex flex-col gap-2"
      row={(row) => (
        <li key={row.id} className="flex items-center gap-3">
          <Avatar name={row.name} src={row.picture} size="sm" square={square} />
          <span className="min-w-0 flex-1 truncate">{row.name}</span>
          <span className="text-muted tabular-nums">{row.value}</span>
        </li>
      )}
    />
  );
}

/** The first items of a list, and the number of others. */
export function ExpandableList<T>({
  all,
  shown,
  row,
  className,
}: {
  all: readonly T[];
  shown: number;
  row: (one: T) => ReactNode;
  className: string;
}) {
  const [expanded, setExpanded] = useState(false);
  return (
    <>
      <ul className={className}>{(expanded ? all : all.slice(0, shown)).map(row)}</ul>
      {all.length > shown ? (
        <div className="mt-2">
          <Button
            size="sm"
            variant="quiet"
            aria-expanded={expanded}
            onClick={() => setExpanded(!expanded)}
          >
            {expanded ? `Show the first ${shown}` : `Show all ${all.length.toLocaleString()}`}
          </Button>
        </div>
      ) : null}
    </>
  );
}
