// Concurrent edits by two tabs or two users: the second to save is warned before anything is
// overwritten.
import { useRef, useState } from "react";

import { Button } from "../Button";
import { Failure } from "../Failure";
import { useForm, type Form } from "./form";
import { Notice } from "../Notice";

export class ConflictError extends Error {}

export interface Conflict<T> {
  /** The version saved by another editor meanwhile; null for none. */
  theirs: T | null;
  /**
   * Wraps the submission of a form: first checks whether its initial version is still the current
   * one.
   */
  guard: <V>(send: (values: V) => Promise<unknown>) => (values: V) => Promise<unknown>;
  /** The current version is the user's own. */
  saved: (now: T) => void;
  /** The next save overwrites. */
  overwrite: () => void;
}

/**
 * `load` fetches the current version, `pick` selects the form's part of it, `start` is the version
 * at the beginning.
 */
export function useConflict<S, T extends object>(
  load: () => Promise<S>,
  pick: (latest: S) => T,
  start: T,
): Conflict<T> {
  const base = useRef(start);
  const [theirs, setTheirs] = useState<T | null>(null);
  return {
    theirs,
    guard: (send) => async (values) => {
      const now = pick(await load());
      if (!isSame(now, base.current)) {
        base.current = now;
        setTheirs(now);
        throw new ConflictError("It was changed elsewhere while you were editing.");
      }
      setTheirs(null);
      return send(values);
    },
    saved: (now) => {
      base.current = now;
      setTheirs(null);
    },
    overwrite: () => setTheirs(null),
  };
}

export type SettingsForm<T> = Form<T> & { conflict: Conflict<T> };

/**
 * A form about an existing object, with `useForm` and `useConflict`: `load` fetches it again (null:
 * the form creates a new one), `pick` selects the fields that the form shows.
 */
export function useSettingsForm<S, T extends object>(
  load: (() => Promise<S>) | null,
  pick: (latest: S) => T,
  start: T,
  send: (values: T) => Promise<unknown>,
  check?: (values: T) => Partial<Record<keyof T & string, string>>,
): SettingsForm<T> {
  const ask = async () => (load ? pick(await load()) : start);
  const conflict = useConflict(ask, (latest) => latest, start);
  const form = useForm<T>(
    start,
    conflict.guard(async (values: T) => {
      await send(values);
      // The server may normalize what was typed: trimmed spaces, sorted lists.
      await ask().then(conflict.saved, () => undefined);
    }),
    check,
  );
  return { ...form, conflict };
}

/**
 * The notices above the fields of such a form: a concurrent change, or the reason of a rejection.
 */
export function FormProblems<T extends object>({ form }: { form: SettingsForm<T> }) {
  if (form.conflict.theirs) return <ConflictNotice conflict={form.conflict} form={form} />;
  return form.error ? <Failure error={form.error} /> : null;
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The notice of a concurrent change with both options. `show` names the fields that differ. */
export function ConflictNotice<T extends object>({
  conflict,
  form,
}: {
  conflict: Conflict<T>;
  form: Form<T>;
}) {
  const { theirs } = conflict;
  if (!theirs) return null;
  const differing = (Object.keys(theirs) as (keyof T & string)[]).filter(
    (name) => JSON.stringify(theirs[name]) !== JSON.stringify(form.values[name]),
  );
  return (
    <Notice
      kind="warning"
      title="This was changed elsewhere while you were editing"
      actions={
        <>
          <Button
            size="sm"
            onClick={() => {
              conflict.overwrite();
              form.submit();
            }}
          >
            Save anyway
          </Button>
          <Button
            size="sm"
            onClick={() => {
              form.reset(theirs);
              conflict.overwrite();
            }}
          >
            Discard my changes
          </Button>
        </>
      }
    >
      <p>Another tab or user has saved it. Your changes have not been saved yet.</p>
      <ul className="mt-1 list-disc pl-5">
        {differing.map((name) => (
          <li key={name}>
            {name.replaceAll("_", " ")} is now <strong>{shown(theirs[name])}</strong>
          </li>
        ))}
      </ul>
    </Notice>
  );
}

function shown(value: unknown): string {
  if (value === "" || value === null || value === undefined) return "empty";
  return typeof value === "string" ? value : JSON.stringify(value);
}
