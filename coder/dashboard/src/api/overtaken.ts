// What was asked for before something newer was known must not come back over it. Data is set by hand here alone: the
// linter refuses `setQueryData` elsewhere.
//
// What is shown is the server's last word, and over it every change it has not answered yet. So an answer that was on
// its way when the person chose, or was given before the change was done, takes nothing back; a change that is refused does.
import {
  matchQuery,
  notifyManager,
  type Query,
  type QueryClient,
  type QueryKey,
} from "@tanstack/react-query";

// Before the next picture, not after it: a radio button that was clicked would be off for a moment.
notifyManager.setScheduler(queueMicrotask);

type Change<T> = T | ((now: T | undefined) => T | undefined);

interface Step {
  queryKey: QueryKey;
  change: (now: unknown) => unknown;
}

interface Ledger {
  /** Made here, not answered yet; in the order they were made. */
  steps: Step[];
  /** The server's last word on each query that a step changes, by its hash. */
  words: Map<string, unknown>;
  /** Steps during which something else was answered: whether it is of before or after, nobody says. */
  unsure: Set<Step>;
}

const ledgers = new WeakMap<QueryClient, Ledger>();

function ledgerOf(queries: QueryClient): Ledger {
  const kept = ledgers.get(queries);
  if (kept) return kept;
  const ledger: Ledger = { steps: [], words: new Map(), unsure: new Set() };
  ledgers.set(queries, ledger);
  queries.getQueryCache().subscribe((event) => {
    if (event.type !== "updated" || event.action.type !== "success" || event.action.manual) return;
    const over = stepsOver(ledger, event.query);
    if (over.length === 0) return;
    for (const step of over) ledger.unsure.add(step);
    ledger.words.set(event.query.queryHash, event.action.data);
    show(queries, ledger, event.query);
  });
  return ledger;
}

const stepsOver = (ledger: Ledger, query: Query) =>
  ledger.steps.filter((step) => matchQuery({ queryKey: step.queryKey }, query));

function show(queries: QueryClient, ledger: Ledger, query: Query): void {
  const data = stepsOver(ledger, query).reduce(
    (now, step) => step.change(now),
    ledger.words.get(query.queryHash),
  );
  // It is as old as it was, and as doubtful: nobody was asked.
  const { dataUpdatedAt, isInvalidated } = query.state;
  queries.setQueryData(query.queryKey, data, { updatedAt: dataUpdatedAt });
  if (isInvalidated) query.invalidate();
}

/** What the server has just said: an answer to a change, a message. A fetch under way began earlier, and begins anew. */
export function setKnown<T>(queries: QueryClient, queryKey: QueryKey, data: Change<T>): void {
  const ledger = ledgerOf(queries);
  const query = queries.getQueryCache().find({ queryKey, exact: true });
  if (query && ledger.words.has(query.queryHash)) {
    const now = ledger.words.get(query.queryHash) as T | undefined;
    ledger.words.set(
      query.queryHash,
      typeof data === "function" ? (data as (now: T | undefined) => T | undefined)(now) : data,
    );
    show(queries, ledger, query);
  } else queries.setQueryData<T>(queryKey, data);
  askAgainIfAsking(queries, queryKey);
}

/** The same for all whose keys begin so, of those that are there. */
export function setKnownBelow<T>(
  queries: QueryClient,
  queryKey: QueryKey,
  change: (now: T) => T,
): void {
  for (const query of queries.getQueryCache().findAll({ queryKey })) {
    if (query.state.data !== undefined)
      setKnown<T>(queries, query.queryKey, (now) => (now === undefined ? now : change(now)));
  }
}

/** One kind of data that a change is seen in: all whose keys begin so, of those that are there. */
export function seenIn<T>(queryKey: QueryKey, change: (now: T) => T): Step {
  return { queryKey, change: (now) => (now === undefined ? now : change(now as T)) };
}

/** Shows a change from now on, and sends it. Raises what `send` raises; then the change is taken back. */
export async function changeAhead<T>(
  queries: QueryClient,
  seen: readonly Step[],
  send: () => Promise<T>,
): Promise<T> {
  const ledger = ledgerOf(queries);
  ledger.steps.push(...seen);
  for (const query of touched(queries, seen)) {
    if (!ledger.words.has(query.queryHash)) ledger.words.set(query.queryHash, query.state.data);
    show(queries, ledger, query);
  }
  let done = false;
  try {
    const answer = await send();
    done = true;
    return answer;
  } finally {
    end(queries, ledger, seen, done);
  }
}

function end(queries: QueryClient, ledger: Ledger, seen: readonly Step[], done: boolean): void {
  for (const query of touched(queries, seen)) {
    const word = ledger.words.get(query.queryHash);
    if (done)
      ledger.words.set(
        query.queryHash,
        stepsOver(ledger, query)
          .filter((step) => seen.includes(step))
          .reduce((now, step) => step.change(now), word),
      );
  }
  ledger.steps = ledger.steps.filter((step) => !seen.includes(step));
  for (const query of touched(queries, seen)) {
    show(queries, ledger, query);
    if (stepsOver(ledger, query).length === 0) ledger.words.delete(query.queryHash); // later words are shown as they are
  }
  if (ledger.steps.length === 0) ledger.words.clear();
  for (const step of seen) {
    // A refused change may have been done, too: its answer may be what was lost.
    if (ledger.unsure.delete(step) || !done)
      void queries.invalidateQueries({ queryKey: step.queryKey });
    else askAgainIfAsking(queries, step.queryKey);
  }
}

const touched = (queries: QueryClient, seen: readonly Step[]): Query[] =>
  queries
    .getQueryCache()
    .getAll()
    .filter(
      (query) =>
        query.state.data !== undefined &&
        seen.some((step) => matchQuery({ queryKey: step.queryKey }, query)),
    );

/** A fetch that is under way began before something was changed: it begins anew. */
function askAgainIfAsking(queries: QueryClient, queryKey: QueryKey): void {
  if (queries.isFetching({ queryKey }) > 0) void queries.invalidateQueries({ queryKey });
}
