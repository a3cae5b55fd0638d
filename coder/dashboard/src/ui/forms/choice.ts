// A choice that is saved at once: it stands from the click on, the next one begins from it, and what is refused is taken
// back. Waiting for the answer instead would swallow the second of two quick clicks, or make it from what was there before.
import { useMutation, useQueryClient, type QueryKey } from "@tanstack/react-query";

import { toast } from "../toast";

interface Choice<T> {
  send: (next: T) => Promise<unknown>;
  /** What shows it: asked anew once it is answered. */
  seen: QueryKey;
  /** What is said when it is refused, before the reason. */
  failed: string;
  /** What is said when it is saved; absent for nothing. */
  done?: string;
}

/** `now` is what the server has said. */
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
