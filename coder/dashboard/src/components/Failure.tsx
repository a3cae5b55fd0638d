// A request that failed in place of what it would have shown: the reason and one way on.
import { ApiError } from "../api/client";
import { Notice } from "./Notice";

export function Failure({ error, retry }: { error: Error; retry: () => void }) {
  const answered = error instanceof ApiError && error.status > 0;
  return (
    <Notice kind="error" title={answered ? error.message : "The server cannot be reached."}>
      {answered ? <Details error={error} /> : null}
      <button type="button" onClick={retry}>Try again</button>
    </Notice>
  );
}

function Details({ error }: { error: ApiError }) {
  return (
    <>
      {error.detail ? <p>{error.detail}</p> : null}
      {error.validations.map((item) => <p key={`${item.field} ${item.detail}`}>{item.detail}</p>)}
    </>
  );
}
