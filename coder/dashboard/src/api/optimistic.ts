// Optimistic changes that an older answer must not overwrite. Only this module may set query data:
// the linter rejects `setQueryData` elsewhere. The page shows the last state from the server with
// every unanswered change applied on top. An answer that was sent before the change was stored
// takes nothing back; a rejected change is rolled back.
import {
  matchQuery,
  notifyManager,
  type Query,
  type QueryClient,
  type QueryKey,
} from "@tanstack/react-query";

// Before the next paint, not after it: a clicked radio button would be off for a moment.
notifyManager.setScheduler(queueMicrotask);

type Change<T> = T | ((now: T | undefined) => T | undefined);

interface Step {
  queryKey: QueryKey;
  change: (now: unknown) => unknown;
}

interface Ledger {
  /** Unanswered changes of this page, in the order in which they were made. */
  steps: Step[];
  /** The last state from the server of each query that a change touches, by the query's hash. */
  words: Map<string, unknown>;
  /**
   * Changes during which another answer arrived: nothing says whether that answer is from before or
   * after the change.
   */
  uncertain: Set<Step>;
}

const ledgers = new WeakMap<QueryClient, Ledger>();

function ledgerOf(queries: QueryClient): Ledger {
  const kept = ledgers.get(queries);
  if (kept) return kept;
  const ledger: Ledger = { steps: [], words: new Map(), uncertain: new Set() };
  ledgers.set(queries, ledger);
  queries.getQueryCache().subscribe((event) => {
    if (event.type !== "updated" || event.action.type !== "success" || event.action.manual) return;
    const over = stepsOver(ledger, event.query);
    if (over.length === 0) return;
    for (const step of over) ledger.uncertain.add(step);
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
  // The data stays as old and as uncertain as it was: no request was sent.
  const { dataUpdatedAt, isInvalidated } = query.state;
  queries.setQueryData(query.queryKey, data, { updatedAt: dataUpdatedAt });
  if (isInvalidated) query.invalidate();
}

/**
 * Record fresh data from the server, such as an answer to a change or a message. A fetch in flight
 * began earlier, so it is restarted.
 */
export function setServerData<T>(queries: QueryClient, queryKey: QueryKey, data: Change<T>): void {
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
  refetchIfFetching(queries, queryKey);
}

/** Do the same for all cached queries whose keys start with this prefix. */
export function setServerDataBelow<T>(
  queries: QueryClient,
  queryKey: QueryKey,
  change: (now: T) => T,
): void {
  for (const query of queries.getQueryCache().findAll({ queryKey })) {
    if (query.state.data !== undefined)
      setServerData<T>(queries, query.queryKey, (now) => (now === undefined ? now : change(now)));
  }
}

/**
 * One kind of data that a change shows up in: all cached queries whose keys start with this prefix.
 */
export function shownIn<T>(queryKey: QueryKey, change: (now: T) => T): Step {
  return { queryKey, change: (now) => (now === undefined ? now : change(now as T)) };
}

/**
 * Show a change from now on, and send it. Raises what `send` raises, after rolling the change back.
 */
export async function changeOptimistically<T>(
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
    if (stepsOver(ledger, query).length === 0) ledger.words.delete(query.queryHash); // later states are shown unchanged
  }
  if (ledger.steps.length === 0) ledger.words.clear();
  for (const step of seen) {
    // A failed change may have been applied, too: perhaps only its answer was lost.
    if (ledger.uncertain.delete(step) || !done)
      void queries.invalidateQueries({ queryKey: step.queryKey });
    else refetchIfFetching(queries, step.queryKey);
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

/** A fetch in flight began before the change: restart it. */
function refetchIfFetching(queries: QueryClient, queryKey: QueryKey): void {
  if (queries.isFetching({ queryKey }) > 0) void queries.invalidateQueries({ queryKey });
}
