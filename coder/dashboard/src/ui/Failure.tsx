// A request that failed, in place of what it would have shown: the reason and one way on.
import { ApiError } from "../api/client";
import { Button } from "./Button";
import { Notice } from "./Notice";

export function Failure({ error, retry, title }: { error: Error; retry?: (() => void) | undefined; title?: string }) {
  const answered = error instanceof ApiError && error.status > 0;
  const message = answered ? error.message : unreachable(error);
  return (
    <Notice kind="error" title={title ?? message} actions={retry ? <Button size="sm" onClick={retry}>Try again</Button> : null}>
      {title ? <p>{message}</p> : null}
      {answered && error.detail ? <p>{error.detail}</p> : null}
      {answered ? error.validations.map((item) => <p key={`${item.field} ${item.detail}`}>{item.field ? `${item.field}: ` : ""}{item.detail}</p>) : null}
    </Notice>
  );
}

// fetch says TypeError for every network failure; anything else is told as it is.
function unreachable(error: Error): string {
  return error instanceof TypeError || error instanceof ApiError ? "The server cannot be reached." : error.message;
}
