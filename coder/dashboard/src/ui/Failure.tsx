// A request that failed, in place of what it would have shown: the reason and one way on.
import { ApiError } from "../api/client";
import { Button } from "./Button";
import { validationText } from "./forms/rules";
import { Notice } from "./Notice";

const NO_CONFLICT = { status: 400, message: "" }; // its message is the title already

export function Failure({ error, retry, title }: { error: Error; retry?: (() => void) | undefined; title?: string }) {
  const answered = error instanceof ApiError && error.status > 0;
  const message = answered ? error.message : unreachable(error);
  return (
    <Notice kind="error" title={title ?? message} actions={retry ? <Button size="sm" onClick={retry}>Try again</Button> : null}>
      {title ? <p>{message}</p> : null}
      {answered && error.detail ? <p>{error.detail}</p> : null}
      {answered ? error.validations.map((item) => <p key={`${item.field} ${item.detail}`}>{item.field ? `${item.field}: ` : ""}{validationText(item.detail, NO_CONFLICT)}</p>) : null}
    </Notice>
  );
}

// fetch says TypeError for every network failure; anything else is told as it is.
function unreachable(error: Error): string {
  return error instanceof TypeError || error instanceof ApiError ? "The server cannot be reached." : error.message;
}
