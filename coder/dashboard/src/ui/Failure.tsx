// A failed request, in place of its result: the reason and one way to continue.
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ApiError } from "../api/client";
import { Button } from "./Button";
import { validationText } from "./forms/rules";
import { Notice } from "./Notice";

const NO_CONFLICT = { status: 400, message: "" }; // its message is already the title

export function Failure({
  error,
  retry,
  title,
}: {
  error: Error;
  retry?: (() => void) | undefined;
  title?: ReactNode;
}) {
  const isApiError = error instanceof ApiError;
  const { message } = error;
  return (
    <Notice
      kind="error"
      title={title ?? message}
      actions={
        retry ? (
          <Button size="sm" onClick={retry}>
            Try again
          </Button>
        ) : null
      }
    >
      {title ? <p>{message}</p> : null}
      {isApiError && error.detail ? <p>{error.detail}</p> : null}
      {isApiError
        ? error.validations.map((item) => (
            <p key={`${item.field} ${item.detail}`}>
              {item.field ? `${item.field}: ` : ""}
              {validationText(item.detail, NO_CONFLICT)}
            </p>
          ))
        : null}
    </Notice>
  );
}

/** The failure of a query that has no data: nothing else may be said of it, and not that it is empty. */
export function LoadFailure({
  query,
  title,
}: {
  query: Pick<UseQueryResult, "isLoadingError" | "error" | "refetch">;
  title: string;
}) {
  return query.isLoadingError && query.error ? (
    <Failure title={title} error={query.error} retry={() => void query.refetch()} />
  ) : null;
}
