// The tree of a template's files next to the open file.
import { FilePlus2, Pencil, Trash2 } from "lucide-react";
import { lazy, Suspense } from "react";

import { IconButton } from "../../../ui/Button";
import { SkeletonRows } from "../../../ui/Loading";
import type { Mark } from "../../../ui/text/CodeEditor";
import { FileTree } from "../FileTree";
import type { EditedFiles } from "./useEditedFiles";

const CodeEditor = lazy(() => import("../../../ui/text/CodeEditor"));

interface EditorFilesProps {
  edited: EditedFiles;
  /** Diagnostics of the last build for the open file. */
  errors: readonly Mark[];
  onCreate: () => void;
  onRename: () => void;
  onDelete: () => void;
}

export function EditorFiles({ edited, errors, onCreate, onRename, onDelete }: EditorFilesProps) {
  const { current, path, target, text, marks } = edited;
  return (
    <div className="grid grid-cols-[15rem_minmax(0,1fr)] overflow-hidden rounded-xl border border-line bg-surface max-md:grid-cols-1">
      <div className="border-r border-line max-md:border-r-0 max-md:border-b">
        <div className="flex items-center justify-between border-b border-line py-1 pr-1.5 pl-3">
          <span className="text-sm font-medium text-muted">Files</span>
          <span className="flex">
            <IconButton size="sm" label="Create file" onClick={onCreate}>
              <FilePlus2 />
            </IconButton>
            <IconButton
              size="sm"
              label={`Rename ${path}`}
              disabled={path === ""}
              onClick={onRename}
            >
              <Pencil />
            </IconButton>
            <IconButton
              size="sm"
              label={`Delete ${path}`}
              disabled={path === ""}
              onClick={onDelete}
            >
              <Trash2 />
            </IconButton>
          </span>
        </div>
        <FileTree paths={[...current.keys()]} shown={path} onShow={edited.show} marks={marks} />
      </div>
      <div className="h-[clamp(18rem,calc(100dvh-20rem),60rem)]">
        {!current.has(path) ? (
          <p className="p-6 text-muted">Select a file.</p>
        ) : text === null ? (
          <p className="p-6 text-muted">This file is binary.</p>
        ) : (
          <Suspense fallback={<SkeletonRows rows={4} />}>
            <CodeEditor
              key={path}
              path={path}
              text={text}
              label={path}
              marks={errors}
              target={target?.file === path ? target : null}
              onChange={(next) => edited.write(next)}
            />
          </Suspense>
        )}
      </div>
    </div>
  );
}
