// The files of a version: folders first, sorted by name.
import { File, FileCode2, FileText, Folder } from "lucide-react";
import type { ReactNode } from "react";

import { cx } from "../../ui/cx";

interface FileTreeProps {
  paths: readonly string[];
  shown: string;
  onShow: (path: string) => void;
  /** Markers next to a name, such as "changed". */
  marks?: ReadonlyMap<string, string>;
  actions?: (path: string) => ReactNode;
}

export function FileTree({ paths, shown, onShow, marks, actions }: FileTreeProps) {
  const rows = rowsOf(paths);
  return (
    <ul aria-label="Files" className="flex flex-col py-1.5 text-sm">
      {rows.map((row) => (
        <li
          key={row.path}
          className="group relative flex items-center"
          style={{ paddingLeft: `${row.depth * 0.9}rem` }}
        >
          {row.folder ? (
            <span className="flex w-full items-center gap-2 px-3 py-1 text-muted">
              <Folder className="size-4 shrink-0" aria-hidden="true" />
              <span className="truncate">{row.name}</span>
            </span>
          ) : (
            <button
              type="button"
              aria-current={row.path === shown ? "true" : undefined}
              onClick={() => onShow(row.path)}
              className={cx(
                "flex w-full min-w-0 items-center gap-2 px-3 py-1 text-left hover:bg-hover",
                row.path === shown && "bg-selected font-medium",
              )}
            >
              {icon(row.path)}
              <span className="truncate">{row.name}</span>
              {marks?.get(row.path) ? (
                <span className="ml-auto shrink-0 text-xs text-warn">{marks.get(row.path)}</span>
              ) : null}
            </button>
          )}
          {row.folder ? null : actions?.(row.path)}
        </li>
      ))}
    </ul>
  );
}

function icon(path: string): ReactNode {
  const Icon = /\.(tf|hcl|json|ya?ml|sh|tftpl)$/.test(path)
    ? FileCode2
    : /\.(md|txt)$/i.test(path)
      ? FileText
      : File;
  return <Icon className="size-4 shrink-0 text-muted" aria-hidden="true" />;
}

export interface Row {
  path: string;
  name: string;
  depth: number;
  folder: boolean;
}

export function rowsOf(paths: readonly string[]): Row[] {
  const rows = new Map<string, Row>();
  for (const path of paths) {
    const parts = path.split("/");
    parts.forEach((name, depth) => {
      const folderPath = parts.slice(0, depth + 1).join("/");
      if (!rows.has(folderPath))
        rows.set(folderPath, { path: folderPath, name, depth, folder: depth < parts.length - 1 });
    });
  }
  // Within each folder, subfolders come before files.
  const key = (row: Row) =>
    row.path
      .split("/")
      .map((name, depth, all) => `${depth < all.length - 1 || row.folder ? "0" : "1"}${name}`)
      .join("/");
  return [...rows.values()].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}
