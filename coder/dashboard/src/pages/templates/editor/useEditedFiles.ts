// The files of a template in the editor, and the open file.
import { useMemo, useState } from "react";

import { textOf } from "../archive";
import type { ArchiveFile } from "../tar";

const encoder = new TextEncoder();

type Files = ReadonlyMap<string, Uint8Array>;

export interface FileLocation {
  file: string;
  line: number;
}

export type EditedFiles = ReturnType<typeof useEditedFiles>;

export function useEditedFiles(files: readonly ArchiveFile[]) {
  const start: Files = useMemo(() => new Map(files.map((file) => [file.path, file.data])), [files]);
  const [current, setCurrent] = useState<Files>(start);
  const [executable, setExecutable] = useState<ReadonlySet<string>>(
    () => new Set(files.filter((file) => file.executable).map((file) => file.path)),
  );
  const [path, setPath] = useState(start.has("main.tf") ? "main.tf" : (files[0]?.path ?? ""));
  const [target, setTarget] = useState<FileLocation | null>(null);
  const text = useMemo(
    () => (current.has(path) ? textOf({ path, data: current.get(path) ?? new Uint8Array() }) : ""),
    [current, path],
  );
  const marks = useMemo(
    () =>
      new Map(
        [...current].flatMap(([name, data]) =>
          start.get(name) === data ? [] : [[name, start.has(name) ? "changed" : "new"] as const],
        ),
      ),
    [current, start],
  );
  /** Add a file under `name`, replacing `old` if given, and open it. */
  const put = (name: string, old: string | null) => {
    setCurrent((before) => {
      const next = new Map(before);
      next.set(name, old === null ? new Uint8Array() : (before.get(old) ?? new Uint8Array()));
      if (old !== null) next.delete(old);
      return next;
    });
    setExecutable((before) => {
      const next = new Set([...before].filter((path) => path !== name && path !== old));
      if (old !== null && before.has(old)) next.add(name);
      return next;
    });
    setPath(name);
  };
  return {
    /** The files as they are uploaded. */
    archive: (): ArchiveFile[] =>
      [...current].map(([name, data]) => ({ path: name, data, executable: executable.has(name) })),
    start,
    current,
    path,
    /** The requested line, until another file is opened. */
    target,
    /** null for a binary file. */
    text,
    /** The differences from the edited version. */
    marks,
    show: (next: string) => {
      setPath(next);
      setTarget(null);
    },
    showPlace: (location: FileLocation) => {
      setPath(location.file);
      setTarget(location);
    },
    write: (text: string) =>
      setCurrent((before) => new Map(before).set(path, encoder.encode(text))),
    create: (name: string) => put(name, null),
    rename: (name: string) => put(name, path),
    remove: () => {
      setCurrent((before) => {
        const next = new Map(before);
        next.delete(path);
        return next;
      });
      setPath([...current.keys()].find((name) => name !== path) ?? "");
    },
  };
}
