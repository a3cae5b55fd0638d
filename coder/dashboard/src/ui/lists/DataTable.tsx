// A table: columns as data, optional selection. On a phone, columns marked `extra` move to a second
// line of their row, each with its name: a narrow screen shows the same data in more lines. The API
// has no order parameter: a heading sorts the loaded rows, and the table says so if there are more.
import { ArrowDown, ArrowUp } from "lucide-react";
import { Fragment, useState, type ReactNode } from "react";

import { cx } from "../cx";
import { useNarrow } from "../narrow";
import { useListView } from "./list-view";
import { chunksOf, isWindowed, RowChunk } from "./RowChunk";
import { nextSorting, sorted, type Sorting, type SortValue } from "./sorting";
import { Tick } from "./Tick";

export interface Column<T> {
  id: string;
  /**
   * A text, so that a moved column can be named next to its values; `hidden` is for screen readers
   * only.
   */
  header: string;
  hidden?: boolean;
  /** In the row's second line on narrow screens. */
  extra?: boolean;
  /** The content explains itself: its name is for screen readers only. */
  plain?: boolean;
  align?: "right";
  /** The heading sorts by this value. */
  sort?: (row: T) => SortValue;
  /** Width of the column, as CSS. With widths, no content moves a column. */
  width?: string;
  className?: string;
  cell: (row: T) => ReactNode;
}

/** The keys of the selected rows. */
export type Selected = Readonly<Record<string, true>>;

interface DataTableProps<T> {
  label: string;
  data: readonly T[];
  columns: readonly Column<T>[];
  rowKey: (row: T) => string;
  rowTestId?: (row: T) => string;
  /** A click on a row's free space does this; the row has a link for keyboards besides. */
  onRowClick?: (row: T) => void;
  selection?: {
    selected: Selected;
    onChange: (selected: Selected) => void;
    name: (row: T) => string;
  };
  /** Shown if there are no rows. */
  empty?: ReactNode;
  footer?: ReactNode;
  dense?: boolean;
  /** Inside a card, which has the edges: the outer cells align with the card’s heading. */
  bare?: boolean;
  /** Number of rows of the whole list, of which `data` is a page. */
  total?: number;
}

export function DataTable<T>({
  label,
  data: unsorted,
  columns,
  rowKey,
  rowTestId,
  onRowClick,
  selection,
  empty,
  footer,
  dense: small = false,
  bare = false,
  total = 0,
}: DataTableProps<T>) {
  const narrow = useNarrow();
  const compact = useListView().density === "compact" && !narrow;
  const dense = small || compact;
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const by = columns.find((column) => column.id === sorting?.column);
  const data = sorted(unsorted, by?.sort, sorting?.down === true);
  const fixed = !narrow && columns.some((column) => column.width !== undefined);
  if (data.length === 0 && empty)
    return <div className="rounded-xl border border-line bg-surface">{empty}</div>;
  const firstLine = narrow ? columns.filter((column) => !column.extra) : columns;
  const below = narrow ? columns.filter((column) => column.extra) : [];
  const keys = data.map(rowKey);
  const chosen = (key: string) => selection?.selected[key] === true;
  const all = keys.length > 0 && keys.every(chosen);
  const windowed = isWindowed(data.length);
  const renderRow = (row: T, index: number) => {
    const key = keys[index] as string;
    const more = below.map((column) => ({ column, shown: column.cell(row) }));
    const tone = cx(
      "transition-colors duration-(--quick)",
      chosen(key) ? "bg-selected" : "hover:bg-hover/60",
    );
    return (
      <Fragment key={key}>
        <tr
          data-testid={rowTestId?.(row)}
          aria-rowindex={windowed ? index + 2 : undefined}
          className={cx(
            index > 0 && "border-t border-t-line",
            tone,
            onRowClick && "cursor-pointer",
          )}
          onClick={
            onRowClick &&
            ((event) => {
              const target = event.target as Element;
              if (!target.closest("a, button, input, label, [role=dialog]")) onRowClick(row);
            })
          }
        >
          {selection ? (
            <td className="pl-4">
              <Tick
                label={`Select ${selection.name(row)}`}
                checked={chosen(key)}
                onChange={(on) => selection.onChange(withKeys(selection.selected, [key], on))}
              />
            </td>
          ) : null}
          {/* Called, not mounted as components: columns created by each render would be new
             components each time, and a refresh would lose the focus or a click. */}
          {firstLine.map((column) => (
            <td
              key={column.id}
              className={cx(
                compact ? "px-4 py-0.5" : dense ? "px-3 py-1.5" : "px-4 py-2.5 max-sm:px-2.5",
                "align-middle",
                column.align === "right" && "text-right",
                column.className,
              )}
            >
              {column.cell(row)}
            </td>
          ))}
        </tr>
        {more.length > 0 ? (
          <tr className={tone}>
            <td
              colSpan={firstLine.length + (selection ? 1 : 0)}
              className={cx("pr-2.5 pb-2.5", selection ? "pl-12.5" : "pl-2.5")}
            >
              <dl className="flex flex-wrap gap-x-5 gap-y-1.5 text-sm">
                {more.map(({ column, shown }) => (
                  <div key={column.id} className="min-w-0">
                    <dt className={column.plain ? "sr-only" : "text-xs text-muted"}>
                      {column.header}
                    </dt>
                    <dd className="[overflow-wrap:anywhere]">{shown}</dd>
                  </div>
                ))}
              </dl>
            </td>
          </tr>
        ) : null}
      </Fragment>
    );
  };
  return (
    <div
      className={cx(
        "overflow-x-auto",
        bare
          ? "rounded-b-xl [&_td:first-child]:pl-5 [&_td:last-child]:pr-5 [&_th:first-child]:pl-5 [&_th:last-child]:pr-5"
          : "rounded-xl border border-line bg-surface shadow-card",
      )}
      tabIndex={-1}
    >
      <table
        className={cx("group/table w-full border-collapse text-base", fixed && "table-fixed")}
        data-density={compact ? "compact" : "normal"}
        aria-rowcount={windowed ? data.length + 1 : undefined}
        aria-label={label}
      >
        <thead>
          <tr className="border-b border-line">
            {selection ? (
              <th scope="col" className="w-10 py-2 pl-4">
                <Tick
                  label="Select all"
                  checked={all}
                  partly={keys.some(chosen)}
                  onChange={(on) => selection.onChange(withKeys(selection.selected, keys, on))}
                />
              </th>
            ) : null}
            {firstLine.map((column) => (
              <th
                key={column.id}
                scope="col"
                style={fixed ? { width: column.width } : undefined}
                aria-sort={by !== column ? undefined : sorting?.down ? "descending" : "ascending"}
                className={cx(
                  "py-2 text-left text-sm font-medium whitespace-nowrap text-muted",
                  small ? "px-3" : "px-4 max-sm:px-2.5",
                  column.align === "right" && "text-right",
                )}
              >
                {column.hidden ? (
                  <span className="sr-only">{column.header}</span>
                ) : column.sort ? (
                  <SortButton
                    header={column.header}
                    sorting={by === column ? sorting : null}
                    right={column.align === "right"}
                    onClick={() => setSorting(nextSorting(sorting, column.id))}
                  />
                ) : (
                  column.header
                )}
              </th>
            ))}
          </tr>
        </thead>
        {chunksOf(data.length).map(({ from, to }) => (
          <RowChunk
            key={from}
            windowed={windowed}
            first={from === 0}
            count={to - from}
            columns={firstLine.length + (selection ? 1 : 0)}
            render={() => data.slice(from, to).map((row, index) => renderRow(row, from + index))}
          />
        ))}
      </table>
      {by && total > data.length ? (
        <p role="status" className="border-t border-line px-4 py-2 text-sm text-muted">
          Sorted by {by.header.toLowerCase()} within the {data.length} rows of this page; the list
          has {total}.
        </p>
      ) : null}
      {footer ? <div className="border-t border-line px-4 py-2.5">{footer}</div> : null}
    </div>
  );
}

function SortButton({
  header,
  sorting,
  right,
  onClick,
}: {
  header: string;
  /** The values stand at the right: the arrow comes first, so that the heading ends above them. */
  right: boolean;
  sorting: Sorting | null;
  onClick: () => void;
}) {
  const Arrow = sorting?.down ? ArrowDown : ArrowUp;
  return (
    <button
      type="button"
      className={cx(
        "group inline-flex items-center gap-1 font-medium hover:text-text",
        right && "flex-row-reverse",
      )}
      onClick={onClick}
    >
      {header}
      <Arrow
        className={cx("size-3.5", sorting ? "" : "opacity-0 group-hover:opacity-50")}
        aria-hidden="true"
      />
    </button>
  );
}

/** Selected rows of other pages stay selected. */
function withKeys(selected: Selected, keys: readonly string[], on: boolean): Selected {
  const next = { ...selected };
  for (const key of keys) {
    if (on) next[key] = true;
    else delete next[key];
  }
  return next;
}
