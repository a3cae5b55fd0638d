// Two tabs, or two people, editing the same thing: the one who saves second is told before anything is overwritten.
import { useRef, useState } from "react";

import { Button } from "../Button";
import { Failure } from "../Failure";
import { useForm, type Form } from "./form";
import { Notice } from "../Notice";

export class ConflictError extends Error {}

export interface Conflict<T> {
  /** What somebody else has saved meanwhile; null for nothing. */
  theirs: T | null;
  /** Wraps the sending of a form: looks first whether what it began from is still what is there. */
  guard: <V>(send: (values: V) => Promise<unknown>) => (values: V) => Promise<unknown>;
  /** What is there now is the person's own. */
  saved: (now: T) => void;
  /** The next save goes through. */
  overwrite: () => void;
}

/** `load` asks the server anew, `pick` takes what the form is about, `start` is what the form began from. */
export function useConflict<S, T extends object>(
  load: () => Promise<S>,
  pick: (found: S) => T,
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
 * A form about something that is there already, by `useForm` and `useConflict`: `load` asks the server for it anew
 * (null: the form makes something new), `pick` says what the form shows of it.
 */
export function useSettingsForm<S, T extends object>(
  load: (() => Promise<S>) | null,
  pick: (found: S) => T,
  start: T,
  send: (values: T) => Promise<unknown>,
  check?: (values: T) => Partial<Record<keyof T & string, string>>,
): SettingsForm<T> {
  const ask = async () => (load ? pick(await load()) : start);
  const conflict = useConflict(ask, (found) => found, start);
  const form = useForm<T>(
    start,
    conflict.guard(async (values: T) => {
      await send(values);
      // What the server made of it may differ from what was typed: spaces cut off, lists in order.
      await ask().then(conflict.saved, () => undefined);
    }),
    check,
  );
  return { ...form, conflict };
}

/** What stands above the fields of such a form: that somebody else was quicker, or why it was refused. */
export function FormProblems<T extends object>({ form }: { form: SettingsForm<T> }) {
  if (form.conflict.theirs) return <ConflictNotice conflict={form.conflict} form={form} />;
  return form.error ? <Failure error={form.error} /> : null;
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Says what happened and offers both ways on. `show` names the fields that differ. */
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
            Save mine over it
          </Button>
          <Button
            size="sm"
            onClick={() => {
              form.reset(theirs);
              conflict.overwrite();
            }}
          >
            Take what is there now
          </Button>
        </>
      }
    >
      <p>Another tab or person has saved it. Nothing of yours is saved yet.</p>
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
