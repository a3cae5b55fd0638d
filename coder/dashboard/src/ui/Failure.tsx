// A failed request, in place of its result: the reason and one way to continue.
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
