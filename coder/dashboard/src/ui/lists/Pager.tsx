// The pagination of a long list: the page is in the address, the rows on a page and the density are
// kept in the browser.
import { ChevronLeft, ChevronRight, Rows3, Rows4 } from "lucide-react";
import { useEffect } from "react";

import { Button, IconButton } from "../Button";
import { useNarrow } from "../narrow";
import { setListView, SIZES, useListView } from "./list-view";

interface PagerProps {
  page: number;
  size: number;
  total: number;
  /** `total` still belongs to the previous list: ignore it. */
  stale: boolean;
  /** Offer page sizes and density. */
  adjustable?: boolean;
  onChange: (page: number) => void;
}

export function Pager({ page, size, total, stale, adjustable = false, onChange }: PagerProps) {
  const narrow = useNarrow();
  const { density } = useListView();
  const pages = Math.max(1, Math.ceil(total / size));
  // The last row of the last page was deleted, or the address is old: an empty page would suggest
  // that the list is empty.
  const beyond = !stale && page > pages;
  useEffect(() => {
    if (beyond) onChange(pages);
  });
  if (beyond) return null;
  const single = pages === 1 && page === 1;
  if (total === 0 || (single && !adjustable)) return null;
  const compact = density === "compact";
  return (
    <nav
      aria-label="Pages"
      className="mt-3 flex flex-wrap items-center justify-between gap-3 text-sm text-muted"
    >
      <span>
        {(page - 1) * size + 1}–{Math.min(page * size, total)} of {total}
      </span>
      {adjustable ? (
        <div className="mr-auto flex items-center gap-2">
          {total > SIZES[0] ? (
            <label className="flex items-center gap-1.5">
              Rows
              <select
                className="h-7.5 rounded-md border border-line bg-surface px-1.5 text-text"
                value={size}
                onChange={(event) => {
                  setListView({ size: Number(event.target.value) });
                  onChange(1);
                }}
              >
                {SIZES.map((choice) => (
                  <option key={choice}>{choice}</option>
                ))}
              </select>
            </label>
          ) : null}
          {narrow ? null : (
            <IconButton
              size="sm"
              label="Compact rows"
              aria-pressed={compact}
              onClick={() => setListView({ density: compact ? "normal" : "compact" })}
            >
              {compact ? <Rows4 /> : <Rows3 />}
            </IconButton>
          )}
        </div>
      ) : null}
      {single ? null : (
        <div className="flex items-center gap-2">
          <Button
            size="sm"
            disabled={page <= 1}
            onClick={() => onChange(page - 1)}
            icon={<ChevronLeft />}
          >
            Previous
          </Button>
          <span className="tabular-nums">
            Page {page} of {pages}
          </span>
          <Button size="sm" disabled={page >= pages} onClick={() => onChange(page + 1)}>
            Next
            <ChevronRight />
          </Button>
        </div>
      )}
    </nav>
  );
}
