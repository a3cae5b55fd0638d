// A page in a component test: server answers come from a table, requests are recorded, sockets are
// controlled by the test.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import { createMemoryRouter, RouterProvider, type RouteObject } from "react-router";
import { afterEach, vi } from "vitest";

import { refetchUser } from "../app/query-client";

/** The providers around the pages of signed-in users. */
export { SignedIn } from "../app/guards";

export interface Sent {
  method: string;
  path: string;
  body: unknown;
}

/**
 * "GET /api/v2/…" without its query: the answer, or a function of the request body and query.
 * `Refusal` for an error. "GET *": of all that have no answer of their own.
 */
export type Answers = Record<string, unknown>;

export class Refusal {
  readonly status: number;
  readonly message: string;
  readonly validations: readonly { field: string; detail: string }[];

  constructor(
    status: number,
    message: string,
    validations: readonly { field: string; detail: string }[] = [],
  ) {
    this.status = status;
    this.message = message;
    this.validations = validations;
  }
}

export class FakeSocket {
  static opened: FakeSocket[] = [];
  static readonly OPEN = 1;
  readyState = 1;
  sent: unknown[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  readonly url: string;

  constructor(url: string) {
    this.url = url;
    FakeSocket.opened.push(this);
    queueMicrotask(() => this.onopen?.());
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  says(value: unknown): void {
    this.onmessage?.({ data: JSON.stringify(value) });
  }
  close(): void {
    this.readyState = 3;
  }

  static to(part: string): FakeSocket | undefined {
    return FakeSocket.opened.findLast((socket) => socket.url.includes(part));
  }
}

/** Everything is allowed unless the test answers otherwise. */
function allowed(body: unknown): Record<string, boolean> {
  const { checks } = body as { checks: Record<string, unknown> };
  return Object.fromEntries(Object.keys(checks).map((name) => [name, true]));
}

/**
 * Renders the routes at an address and records each request. Requests without an answer get a 404.
 * `fetching` is the number of pending requests.
 */
export function visit(
  routes: RouteObject[],
  address: string,
  answers: Answers,
): { sent: Sent[]; requests: string[]; at: () => string; fetching: () => number } {
  const sent: Sent[] = [];
  const requests: string[] = [];
  const allAnswers: Answers = { "POST /api/v2/authcheck": allowed, ...answers };
  FakeSocket.opened = [];
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("fetch", async (target: string, init: RequestInit = {}) => {
    const method = init.method ?? "GET";
    const path = target.split("?")[0] ?? "";
    const body: unknown = typeof init.body === "string" ? JSON.parse(init.body) : init.body;
    if (method !== "GET" && !path.endsWith("/authcheck")) sent.push({ method, path, body });
    requests.push(`${method} ${path}`);
    const match = allAnswers[`${method} ${path}`] ?? allAnswers[`${method} *`];
    const answer: unknown = await (typeof match === "function"
      ? (match as (body: unknown, query: URLSearchParams) => unknown)(
          body,
          new URLSearchParams(target.split("?")[1]),
        )
      : match);
    if (answer === undefined)
      return Response.json({ message: `no answer for ${method} ${path}` }, { status: 404 });
    if (answer instanceof Refusal)
      return Response.json(
        { message: answer.message, validations: answer.validations },
        { status: answer.status },
      );
    return answer instanceof Uint8Array ? new Response(answer as BodyInit) : Response.json(answer);
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  refetchUser(client);
  const router = createMemoryRouter(routes, { initialEntries: [address] });
  render(
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  );
  return {
    sent,
    requests,
    at: () => `${router.state.location.pathname}${router.state.location.search}`,
    fetching: () => client.isFetching(),
  };
}

afterEach(() => vi.unstubAllGlobals());
