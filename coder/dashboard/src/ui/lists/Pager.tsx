// The pagination of a long list; the page is in the address.
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useEffect } from "react";

import { Button } from "../Button";

interface PagerProps {
  page: number;
  size: number;
  total: number;
  /** `total` still belongs to the previous list: ignore it. */
  stale: boolean;
  onChange: (page: number) => void;
}

export function Pager({ page, size, total, stale, onChange }: PagerProps) {
  const pages = Math.max(1, Math.ceil(total / size));
  // The last row of the last page was deleted, or the address is old: an empty page would suggest
  // that the list is empty.
  const beyond = !stale && page > pages;
  useEffect(() => {
    if (beyond) onChange(pages);
  });
  if (beyond) return null;
  if (pages === 1 && page === 1) return null;
  return (
    <nav
      aria-label="Pages"
      className="mt-3 flex flex-wrap items-center justify-between gap-3 text-sm text-muted"
    >
      <span>
        {total === 0 ? "0" : `${(page - 1) * size + 1}–${Math.min(page * size, total)}`} of {total}
      </span>
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
    </nav>
  );
}
