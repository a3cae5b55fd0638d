// The state of a form: values, what is wrong with which, whether it is on its way. A failed submit keeps every letter;
// the server's validations land on the field of the same name.
import { useState, type FormEvent } from "react";

import { ApiError } from "../../api/client";

export interface Form<T> {
  values: T;
  set: <K extends keyof T>(name: K, value: T[K]) => void;
  reset: (values: T) => void;
  problem: (name: keyof T & string) => string | undefined;
  /** What is wrong with the whole, null for nothing. */
  error: Error | null;
  busy: boolean;
  dirty: boolean;
  submit: (event?: FormEvent) => void;
}

type Problems<T> = Partial<Record<keyof T & string, string>>;

export function useForm<T extends object>(initial: T, send: (values: T) => Promise<unknown>, check?: (values: T) => Problems<T>): Form<T> {
  const [start, setStart] = useState(initial);
  const [values, setValues] = useState(initial);
  const [error, setError] = useState<Error | null>(null);
  const [problems, setProblems] = useState<Problems<T>>({});
  const [busy, setBusy] = useState(false);

  const set = <K extends keyof T>(name: K, value: T[K]) => {
    setValues((old) => ({ ...old, [name]: value }));
    setProblems((old) => ({ ...old, [name]: undefined }));
  };
  const run = async () => {
    const found = check?.(values) ?? {};
    setProblems(found);
    setError(null);
    if (Object.values(found).some(Boolean)) return;
    setBusy(true);
    try {
      await send(values);
      setStart(values);
    } catch (caught) {
      const failure = caught instanceof Error ? caught : new Error(String(caught));
      setError(failure);
      if (failure instanceof ApiError) setProblems(problemsOf<T>(failure, values));
    } finally {
      setBusy(false);
    }
  };
  return {
    values, set, error, busy,
    reset: (next) => { setStart(next); setValues(next); setProblems({}); setError(null); },
    problem: (name) => problems[name],
    dirty: JSON.stringify(values) !== JSON.stringify(start),
    submit: (event) => { event?.preventDefault(); if (!busy) void run(); },
  };
}

function problemsOf<T extends object>(error: ApiError, values: T): Problems<T> {
  const found: Problems<T> = {};
  for (const item of error.validations) {
    if (item.field in values) found[item.field as keyof T & string] = item.detail;
  }
  return found;
}
