// A choice that is saved at once: it applies from the click on, the next one builds on it, and a
// rejected one is rolled back. Waiting for the answer instead would drop the second of two quick
// clicks, or build it on the old value.
import { useMutation, useQueryClient, type QueryKey } from "@tanstack/react-query";

import { toast } from "../toast";

interface Choice<T> {
  send: (next: T) => Promise<unknown>;
  /** The query that shows it: refetched after the answer. */
  seen: QueryKey;
  /** The message of a rejection, before its reason. */
  failed: string;
  /** The message after saving; absent for none. */
  done?: string;
}

/** `now` is the server's value. */
export function useChoice<T>(
  now: T,
  { send, seen, failed, done }: Choice<T>,
): { value: T; choose: (next: T) => void } {
  const queries = useQueryClient();
  const mutation = useMutation({
    mutationFn: send,
    onSuccess: () => {
      if (done) toast.done(done);
    },
    onError: (error) => toast.failed(failed, error),
    onSettled: () => queries.invalidateQueries({ queryKey: seen }),
  });
  return {
    value: mutation.isPending ? mutation.variables : now,
    choose: (next) => mutation.mutate(next),
  };
}
