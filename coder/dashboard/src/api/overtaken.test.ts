import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { expect, it, vi } from "vitest";

import { askAgainIfAsking, setAhead, setKnown } from "./overtaken";

it("does not let an older answer stand over what came meanwhile", async () => {
  const queries = new QueryClient();
  const answers: ((count: number) => void)[] = [];
  const observer = new QueryObserver(queries, { queryKey: ["inbox"], queryFn: () => new Promise<number>((done) => answers.push(done)), staleTime: 60_000 });
  const stop = observer.subscribe(() => undefined);
  await vi.waitFor(() => { expect(answers).toHaveLength(1); });
  setAhead(queries, ["inbox"], 2);
  expect(answers).toHaveLength(1);
  setKnown(queries, ["inbox"], 1);
  await vi.waitFor(() => { expect(answers).toHaveLength(2); });
  answers[0]?.(0);
  answers[1]?.(1);
  await vi.waitFor(() => { expect(queries.isFetching()).toBe(0); });
  expect(queries.getQueryData(["inbox"])).toBe(1);
  askAgainIfAsking(queries, ["inbox"]);
  expect(answers).toHaveLength(2);
  stop();
});
