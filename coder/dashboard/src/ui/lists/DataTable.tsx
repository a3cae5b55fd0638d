// A table: columns as data, optional sorting and selection. On a phone the columns marked `extra` stand in a second line
// of their row, each with its name: a narrow screen shows less beside each other, never less.
import { getCoreRowModel, getSortedRowModel, useReactTable, type Cell, type ColumnDef, type RowData, type RowSelectionState, type SortingState } from "@tanstack/react-table";
import { ArrowDown, ArrowUp } from "lucide-react";
import { Fragment, useState, type ReactNode } from "react";

import { cx } from "../cx";
import { useNarrow } from "../narrow";

declare module "@tanstack/react-table" {
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  interface ColumnMeta<TData extends RowData, TValue> {
    /** In the row's second line on narrow screens. */
    extra?: boolean;
    align?: "right";
    className?: string;
  }
}

export type Column<T> = ColumnDef<T>;

interface DataTableProps<T> {
  label: string;
  data: readonly T[];
  columns: Column<T>[];
  rowKey: (row: T) => string;
  rowTestId?: (row: T) => string;
  selection?: { selected: RowSelectionState; onChange: (selected: RowSelectionState) => void; name: (row: T) => string };
  sortable?: boolean;
  /** Shown instead of rows when there are none. */
  empty?: ReactNode;
  footer?: ReactNode;
  dense?: boolean;
}

export function DataTable<T>({ label, data, columns, rowKey, rowTestId, selection, sortable = false, empty, footer, dense = false }: DataTableProps<T>) {
  const [sorting, setSorting] = useState<SortingState>([]);
  const table = useReactTable<T>({
    data: data as T[],
    columns,
    getRowId: rowKey,
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
    enableSorting: sortable,
    state: { sorting, rowSelection: selection?.selected ?? {} },
    onSortingChange: setSorting,
    enableRowSelection: selection !== undefined,
    onRowSelectionChange: (next) => selection?.onChange(typeof next === "function" ? next(selection.selected) : next),
  });
  const rows = table.getRowModel().rows;
  const narrow = useNarrow();
  const aside = (column: { columnDef: ColumnDef<T> }) => narrow && column.columnDef.meta?.extra === true;
  if (rows.length === 0 && empty) return <div className="rounded-xl border border-line bg-surface">{empty}</div>;
  const pad = dense ? "px-3 py-1.5" : "px-4 py-2.5 max-sm:px-2.5";
  return (
    <div className="overflow-x-auto rounded-xl border border-line bg-surface shadow-card" tabIndex={-1}>
      <table className="w-full border-collapse text-base" aria-label={label}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} className="border-b border-line">
              {selection ? (
                <th scope="col" className="w-10 py-2 pl-4">
                  <Tick label="Select all" checked={table.getIsAllRowsSelected()} partly={table.getIsSomeRowsSelected()} onChange={(on) => table.toggleAllRowsSelected(on)} />
                </th>
              ) : null}
              {group.headers.filter((header) => !aside(header.column)).map((header) => {
                const meta = header.column.columnDef.meta;
                const sorted = header.column.getIsSorted();
                const text = drawn(header.column.columnDef.header, header.getContext());
                return (
                  <th key={header.id} scope="col" className={cx("py-2 text-left text-sm font-medium whitespace-nowrap text-muted", dense ? "px-3" : "px-4 max-sm:px-2.5", meta?.align === "right" && "text-right")}
                    {...(sorted ? { "aria-sort": sorted === "asc" ? "ascending" as const : "descending" as const } : {})}>
                    {header.column.getCanSort() ? (
                      <button type="button" className="inline-flex items-center gap-1 hover:text-text" onClick={header.column.getToggleSortingHandler()}>
                        {text}
                        {sorted === "asc" ? <ArrowUp className="size-3.5" aria-hidden="true" /> : sorted === "desc" ? <ArrowDown className="size-3.5" aria-hidden="true" /> : null}
                      </button>
                    ) : text}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody>
          {rows.map((row) => {
            const cells = row.getVisibleCells();
            const more = cells.filter((cell) => aside(cell.column));
            const tone = cx("transition-colors duration-(--quick)", row.getIsSelected() ? "bg-selected" : "hover:bg-hover/60");
            return (
              <Fragment key={row.id}>
                <tr data-testid={rowTestId?.(row.original)} className={cx("not-first:border-t not-first:border-line", tone)}>
                  {selection ? (
                    <td className="pl-4">
                      <Tick label={`Select ${selection.name(row.original)}`} checked={row.getIsSelected()} onChange={(on) => row.toggleSelected(on)} />
                    </td>
                  ) : null}
                  {cells.filter((cell) => !aside(cell.column)).map((cell) => {
                    const meta = cell.column.columnDef.meta;
                    return (
                      <td key={cell.id} className={cx(pad, "align-middle", meta?.align === "right" && "text-right", meta?.className)}>
                        {drawn(cell.column.columnDef.cell, cell.getContext())}
                      </td>
                    );
                  })}
                </tr>
                {more.length > 0 ? <SecondLine cells={more} width={cells.length - more.length + (selection ? 1 : 0)} className={tone} /> : null}
              </Fragment>
            );
          })}
        </tbody>
      </table>
      {footer ? <div className="border-t border-line px-4 py-2.5">{footer}</div> : null}
    </div>
  );
}

function SecondLine<T>({ cells, width, className }: { cells: Cell<T, unknown>[]; width: number; className: string }) {
  return (
    <tr className={className}>
      <td colSpan={width} className="px-2.5 pb-2.5">
        <dl className="flex flex-wrap gap-x-5 gap-y-1.5 text-sm">
          {cells.map((cell) => (
            <div key={cell.id} className="min-w-0">
              <dt className="text-xs text-muted">{named(cell.column.columnDef.header, cell.column.id)}</dt>
              <dd className="[overflow-wrap:anywhere]">{drawn(cell.column.columnDef.cell, cell.getContext())}</dd>
            </div>
          ))}
        </dl>
      </td>
    </tr>
  );
}

/** A column that gives way is named by a text: its name stands beside every value. */
function named(header: unknown, id: string): string {
  return typeof header === "string" ? header : id;
}

/**
 * Called, not mounted as a component of its own: columns made anew by each render would be new components each time, and
 * a refresh under the keyboard would take its focus, under the mouse its click.
 */
function drawn<C>(part: string | ((context: C) => ReactNode) | undefined, context: C): ReactNode {
  return typeof part === "function" ? part(context) : part;
}

function Tick({ label, checked, partly = false, onChange }: { label: string; checked: boolean; partly?: boolean; onChange: (checked: boolean) => void }) {
  return (
    <input type="checkbox" aria-label={label} className="block size-4 accent-(--accent)" checked={checked}
      ref={(input) => { if (input) input.indeterminate = partly && !checked; }} onChange={(event) => onChange(event.target.checked)} />
  );
}
