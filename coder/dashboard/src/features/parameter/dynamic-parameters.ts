// The parameters of a template as the server evaluates them for the current values: each change is
// sent, and each answer lists the current parameters, their options, and their errors. The other
// end of the stream is coder/coderd/services/templates/dynamic_parameters.py.
import { useCallback, useEffect, useRef, useState } from "react";

import { useSocket } from "../../api/socket";
import type {
  DynamicParametersResponse,
  FriendlyDiagnostic,
  PreviewParameter,
} from "../../api/types";

const SETTLE_MS = 120;

export interface DynamicParameters {
  /** null until the server has answered. */
  parameters: readonly PreviewParameter[] | null;
  diagnostics: readonly FriendlyDiagnostic[];
  /** Values set by the user, a link or a preset. */
  chosen: Readonly<Record<string, string>>;
  choose: (values: Readonly<Record<string, string>>) => void;
  /** The current value of a parameter. */
  valueOf: (parameter: PreviewParameter) => string;
  /** Waiting for the answer to the last change. */
  stale: boolean;
}

export function useDynamicParameters(
  version: string | null,
  owner: string,
  start: Readonly<Record<string, string>>,
): DynamicParameters {
  const [chosen, setChosen] = useState(start);
  const [answer, setAnswer] = useState<DynamicParametersResponse | null>(null);
  const [sent, setSent] = useState(0);
  const last = useRef(0);
  const send = useRef<((value: unknown) => void) | null>(null);
  const current = useRef(chosen);
  const timer = useRef<number | undefined>(undefined);

  const ask = useCallback(() => {
    last.current += 1;
    setSent(last.current);
    send.current?.({ id: last.current, inputs: current.current, owner_id: owner });
  }, [owner]);

  useSocket(version && `/api/v2/templateversions/${version}/dynamic-parameters?user_id=${owner}`, {
    onOpen: (sendValues) => {
      send.current = sendValues;
      if (Object.keys(current.current).length > 0) ask();
    },
    onMessage: (data) => {
      const next = data as DynamicParametersResponse;
      // An answer to outdated values would undo what the user is typing.
      if (next.id >= last.current || (next.id < 0 && Object.keys(current.current).length === 0))
        setAnswer(next);
    },
  });
  useEffect(() => () => window.clearTimeout(timer.current), []);
  useEffect(() => {
    setAnswer(null);
    last.current = 0;
  }, [version, owner]);

  const choose = useCallback(
    (values: Readonly<Record<string, string>>) => {
      current.current = { ...current.current, ...values };
      setChosen(current.current);
      window.clearTimeout(timer.current);
      timer.current = window.setTimeout(ask, SETTLE_MS);
    },
    [ask],
  );

  return {
    parameters: answer?.parameters
      ? [...answer.parameters].sort((a, b) => a.order - b.order || a.name.localeCompare(b.name))
      : answer
        ? []
        : null,
    diagnostics: answer?.diagnostics ?? [],
    chosen,
    choose,
    valueOf: (parameter) =>
      chosen[parameter.name] ??
      (parameter.value.valid
        ? parameter.value.value
        : parameter.default_value.valid
          ? parameter.default_value.value
          : ""),
    stale: answer !== null && sent > answer.id && answer.id >= 0,
  };
}

/** The values to build with: every parameter that has a value. */
export function buildValues(state: DynamicParameters): { name: string; value: string }[] {
  return (state.parameters ?? []).map((parameter) => ({
    name: parameter.name,
    value: state.valueOf(parameter),
  }));
}

/** Why a form with an invalid parameter cannot be submitted. */
export const FIX_PARAMETERS = "Fix the parameters marked above.";

export function hasErrors(state: DynamicParameters): boolean {
  return [
    ...state.diagnostics,
    ...(state.parameters ?? []).flatMap((parameter) => parameter.diagnostics),
  ].some((item) => item.severity === "error");
}

/**
 * The error of a value, worded for the user who chose it: the text of the template's author, not
 * the name of the rule.
 */
export function problemOf({ summary, detail, extra }: FriendlyDiagnostic): {
  title: string;
  detail: string;
} {
  if (extra.code === "required") return { title: "A value is required.", detail: "" };
  if (detail !== "" && /^Invalid parameter value according to/.test(summary))
    return { title: detail, detail: "" };
  return { title: summary, detail: detail === summary ? "" : detail };
}
