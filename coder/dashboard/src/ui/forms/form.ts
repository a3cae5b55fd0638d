// The state of a form: values, errors by field, whether it is being submitted. A failed submit
// keeps all input; the server's validations appear at the field of the same name, and the first
// invalid field gets the focus.
import { useEffect, useRef, useState, type FormEvent } from "react";

import { ApiError } from "../../api/client";
import { validationText } from "./rules";

export interface Form<T> {
  values: T;
  set: <K extends keyof T>(name: K, value: T[K]) => void;
  reset: (values: T) => void;
  problem: (name: keyof T & string) => string | undefined;
  /** The error of the whole form, null for none. Errors shown at a field are not repeated here. */
  error: Error | null;
  busy: boolean;
  dirty: boolean;
  submit: (event?: FormEvent) => void;
  /** Set values and submit the form with them: for changes that take effect at once. */
  save(changes: Partial<T>): void;
}

type Problems<T> = Partial<Record<keyof T & string, string>>;

const WRONG = '[aria-invalid="true"]';

export function useForm<T extends object>(
  initial: T,
  send: (values: T) => Promise<unknown>,
  check?: (values: T) => Problems<T>,
): Form<T> {
  const [start, setStart] = useState(initial);
  const [values, setValues] = useState(initial);
  const [error, setError] = useState<Error | null>(null);
  const [problems, setProblems] = useState<Problems<T>>({});
  const [busy, setBusy] = useState(false);
  const element = useRef<Element | null>(null);
  const [refused, setRefused] = useState<{ by: Error | null } | null>(null);

  useEffect(() => {
    if (refused === null || element.current === null) return;
    const field = element.current.querySelector<HTMLElement>(WRONG);
    if (field) {
      field.scrollIntoView({ block: "center" });
      field.focus({ preventScroll: true });
    } else if (refused.by && error !== refused.by) {
      setError(refused.by); // its field is not displayed: the error belongs to the whole form
    } else {
      element.current.querySelector('[role="alert"]')?.scrollIntoView({ block: "center" });
    }
  }, [refused, error]);

  const set = <K extends keyof T>(name: K, value: T[K]) => {
    setValues((old) => ({ ...old, [name]: value }));
    setProblems((old) => ({ ...old, [name]: undefined }));
  };
  const run = async (sent: T) => {
    const problemsFound = check?.(sent) ?? {};
    setProblems(problemsFound);
    setError(null);
    setRefused(null);
    if (Object.values(problemsFound).some(Boolean)) {
      setRefused({ by: null });
      return;
    }
    setBusy(true);
    try {
      await send(sent);
      setStart(sent);
    } catch (caught) {
      const failure = caught instanceof Error ? caught : new Error(String(caught));
      const fieldProblems = failure instanceof ApiError ? problemsOf<T>(failure, sent) : {};
      const elsewhere =
        failure instanceof ApiError &&
        failure.validations.length > 0 &&
        failure.validations.every((item) => item.field in fieldProblems);
      setProblems(fieldProblems);
      setError(elsewhere ? null : failure);
      setRefused({ by: failure });
    } finally {
      setBusy(false);
    }
  };
  return {
    values,
    set,
    error,
    busy,
    reset: (next) => {
      setStart(next);
      setValues(next);
      setProblems({});
      setError(null);
    },
    problem: (name) => problems[name],
    dirty: JSON.stringify(values) !== JSON.stringify(start),
    submit: (event) => {
      event?.preventDefault();
      if (event?.currentTarget instanceof Element) element.current = event.currentTarget;
      if (!busy) void run(values);
    },
    save: (changes) => {
      const next = { ...values, ...changes };
      setValues(next);
      if (!busy) void run(next);
    },
  };
}

function problemsOf<T extends object>(error: ApiError, values: T): Problems<T> {
  const byField: Problems<T> = {};
  for (const item of error.validations) {
    if (item.field in values)
      byField[item.field as keyof T & string] = validationText(item.detail, error);
  }
  return byField;
}
