import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, expect, it } from "vitest";

import { changeOptimistically, shownIn, setServerData, setServerDataBelow } from "./optimistic";
import { soon } from "../test/soon";

type Answer = (value: string[]) => void;

/** A mounted list whose answers the test controls: each fetch waits for one. */
async function mountList(first: string[]) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const fetches: Answer[] = [];
  const observer = new QueryObserver(queries, {
    queryKey: ["list", "a"],
    queryFn: () => new Promise<string[]>((done) => fetches.push(done)),
    staleTime: 60_000,
  });
  stops.push(observer.subscribe(() => undefined));
  await soon(() => {
    expect(fetches).toHaveLength(1);
  });
  fetches[0]?.(first);
  const shown = () => queries.getQueryData<string[]>(["list", "a"]);
  await soon(() => {
    expect(shown()).toEqual(first);
  });
  return {
    queries,
    fetches,
    shown,
    idle: () =>
      soon(() => {
        expect(queries.isFetching()).toBe(0);
      }),
  };
}

/** An answer to a change, sent when the test decides. */
function answer<T>() {
  let resolve: (value: T) => void = () => undefined;
  let refuse: (error: Error) => void = () => undefined;
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    refuse = failed;
  });
  return { promise, give: resolve, refuse };
}

const with_ = (item: string) =>
  shownIn<string[]>(["list"], (list) => (list.includes(item) ? list : [...list, item]));
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

it("discards an older answer than the last state", async () => {
  const { queries, fetches, shown, idle } = await mountList(["a"]);
  void queries.invalidateQueries({ queryKey: ["list"] });
  await soon(() => {
    expect(fetches).toHaveLength(2);
  });
  setServerData(queries, ["list", "a"], ["a", "b"]);
  await soon(() => {
    expect(fetches).toHaveLength(3);
  });
  fetches[1]?.(["a"]);
  fetches[2]?.(["a", "b"]);
  await idle();
  expect(shown()).toEqual(["a", "b"]);
  setServerDataBelow<string[]>(queries, ["list"], (list) => [...list, "c"]);
  expect(shown()).toEqual(["a", "b", "c"]);
  expect(fetches).toHaveLength(3);
});

it("shows a change at once, over answers that predate it", async () => {
  const { queries, fetches, shown, idle } = await mountList(["a"]);
  void queries.invalidateQueries({ queryKey: ["list"] }); // in flight when the change is made …
  await soon(() => {
    expect(fetches).toHaveLength(2);
  });
  const saved = answer<null>();
  const done = changeOptimistically(queries, [with_("b")], () => saved.promise);
  expect(shown()).toEqual(["a", "b"]);
  fetches[1]?.(["a"]); // … and answered with the previous state
  await idle();
  expect(shown()).toEqual(["a", "b"]);
  void queries.invalidateQueries({ queryKey: ["list"] }); // started after it, but still answered with the previous state
  await soon(() => {
    expect(fetches).toHaveLength(3);
  });
  fetches[2]?.(["a", "x"]);
  await idle();
  expect(shown()).toEqual(["a", "x", "b"]);
  saved.give(null);
  await done;
  expect(shown()).toEqual(["a", "x", "b"]);
  await soon(() => {
    expect(fetches).toHaveLength(4);
  }); // either answer may predate the change
  fetches[3]?.(["a", "x", "b"]);
  await idle();
});

it("refetches nothing if no answer arrived meanwhile", async () => {
  const { queries, fetches, shown } = await mountList(["a"]);
  await changeOptimistically(queries, [with_("b")], () => Promise.resolve(null));
  expect(shown()).toEqual(["a", "b"]);
  expect(queries.isFetching()).toBe(0);
  expect(fetches).toHaveLength(1);
});

it("rolls back only the rejected change", async () => {
  const { queries, fetches, shown, idle } = await mountList(["a"]);
  const first = answer<null>();
  const second = answer<null>();
  const refused = changeOptimistically(queries, [with_("b")], () => first.promise);
  const ledger = changeOptimistically(queries, [with_("c")], () => second.promise);
  expect(shown()).toEqual(["a", "b", "c"]);
  first.refuse(new Error("no"));
  await expect(refused).rejects.toThrow("no");
  expect(shown()).toEqual(["a", "c"]);
  await soon(() => {
    expect(fetches).toHaveLength(2);
  }); // it may have been applied, with its answer lost
  fetches[1]?.(["a"]);
  await idle();
  expect(shown()).toEqual(["a", "c"]);
  second.give(null);
  await ledger;
  await soon(() => {
    expect(fetches).toHaveLength(3);
  });
  fetches[2]?.(["a", "c"]);
  await idle();
  expect(shown()).toEqual(["a", "c"]);
});

it("updates the base below unanswered changes", async () => {
  const { queries, shown } = await mountList(["a"]);
  const saved = answer<null>();
  const done = changeOptimistically(queries, [with_("b")], () => saved.promise);
  setServerData<string[]>(queries, ["list", "a"], (list) => ["new", ...(list ?? [])]);
  expect(shown()).toEqual(["new", "a", "b"]);
  saved.give(null);
  await done;
  expect(shown()).toEqual(["new", "a", "b"]);
});
