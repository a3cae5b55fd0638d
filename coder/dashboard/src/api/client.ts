// The API client: JSON in, JSON out, the error envelope as an exception. It knows nothing about
// pages.
import { serialized } from "./serialized";

export class ApiError extends Error {
  readonly status: number;
  readonly detail: string;
  readonly validations: readonly { field: string; detail: string }[];

  constructor(
    status: number,
    body: { message?: string; detail?: string; validations?: { field: string; detail: string }[] },
  ) {
    super(body.message ?? `The server answered with status ${status}.`);
    this.status = status;
    this.detail = body.detail ?? "";
    this.validations = Array.isArray(body.validations) ? body.validations : [];
  }
}

/** The server sent no readable answer: nothing arrived, it came too late, or it was cut off. */
export class NoAnswer extends ApiError {
  /**
   * Whether the same query may be retried at once. A user who has already waited for a timeout does
   * not wait a second time.
   */
  readonly again: boolean;

  constructor(message: string, detail: string, again: boolean) {
    super(0, { message, detail });
    this.again = again;
  }
}

/** The reason of a failure in one line, with what is unknown after a missing answer. */
export function reasonOf(error: unknown): string {
  if (error instanceof NoAnswer) return `${error.message} ${error.detail}`.trim();
  return error instanceof Error ? error.message : "";
}

/** Do not retry what the server rejected; retry network failures. */
export function isTransient(error: Error): boolean {
  if (error instanceof NoAnswer) return error.again;
  return !(error instanceof ApiError) || error.status >= 500;
}

/**
 * Time limits for an answer up to its last byte. Template archives are sent over slow connections.
 */
export const LIMITS_MS = { question: 60_000, change: 120_000, bytes: 1_800_000 } as const;

const UNKNOWN_OUTCOME = "The change may have been applied all the same. Check before you retry.";

/** Send the request, and explain in plain words when there is no answer. */
async function answered<T>(
  kind: keyof typeof LIMITS_MS,
  changes: boolean,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const control = new AbortController();
  const timer = window.setTimeout(() => control.abort(), LIMITS_MS[kind]);
  try {
    return await ask(control.signal);
  } catch (error) {
    const outcome = changes ? UNKNOWN_OUTCOME : "";
    if (control.signal.aborted)
      throw new NoAnswer(
        `The server did not answer within ${LIMITS_MS[kind] / 60_000} min.`,
        outcome,
        false,
      );
    if (error instanceof TypeError) throw new NoAnswer("The server is unreachable.", outcome, true); // fetch's only network error
    throw error;
  } finally {
    window.clearTimeout(timer);
  }
}

// The server sets a CSRF cookie that scripts cannot read; pages carry the matching token in a meta element.
function csrfToken(): string {
  return document.querySelector<HTMLMetaElement>('meta[property="csrf-token"]')?.content ?? "";
}

/** Methods that set the final state of a resource: the last request must also arrive last. */
const ORDERED_METHODS: ReadonlySet<string> = new Set(["PUT", "PATCH"]);

export function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  return ORDERED_METHODS.has(method)
    ? serialized(path, () => send<T>(method, path, body))
    : send<T>(method, path, body);
}

// Browsers reject keepalive requests once their bodies exceed 64 KiB in total.
const KEEPALIVE_BYTES = 60_000;
let keepaliveBytes = 0;

/**
 * Send the request even if the user leaves the page immediately; otherwise the browser aborts
 * requests in flight.
 */
async function sendOnce(path: string, init: RequestInit, body: string): Promise<Response> {
  const size = new TextEncoder().encode(body).length;
  if (keepaliveBytes + size > KEEPALIVE_BYTES) return fetch(path, init);
  keepaliveBytes += size;
  try {
    return await fetch(path, { ...init, keepalive: true });
  } finally {
    keepaliveBytes -= size;
  }
}

async function send<T>(method: string, path: string, body: unknown): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const changes = method !== "GET";
  if (changes) headers["X-CSRF-TOKEN"] = csrfToken();
  const text = body === undefined ? "" : JSON.stringify(body);
  return answered(changes ? "change" : "question", changes, async (signal) => {
    const init: RequestInit = {
      method,
      headers,
      credentials: "same-origin",
      signal,
      ...(body === undefined ? {} : { body: text }),
    };
    return readAnswer<T>(
      await (changes ? sendOnce(path, init, text) : fetch(path, init)),
      method,
      path,
    );
  });
}

const UNAUTHORIZED = 401;
const EMPTY_STATUSES: ReadonlySet<number> = new Set([202, 204]);

const CURRENT_USER = "/api/v2/users/me"; // the endpoint whose answer says only this
let hearSignedOut: () => void = () => undefined;

/**
 * Called for every answer that says the session is invalid, whichever form or list sent the
 * request.
 */
export function onSignedOut(notifySignedOut: () => void): void {
  hearSignedOut = notifySignedOut;
}

async function readAnswer<T>(response: Response, method: string, path: string): Promise<T> {
  if (response.status === UNAUTHORIZED && path !== CURRENT_USER) hearSignedOut();
  const text = await response.text();
  const value: unknown = parse(text);
  if (!response.ok) throw new ApiError(response.status, isEnvelope(value) ? value : {});
  if (value !== undefined) return value as T;
  if (text === "" && (method === "DELETE" || EMPTY_STATUSES.has(response.status)))
    return undefined as T;
  const explanation =
    text === "" ? "The answer was empty." : `The answer began with: ${text.trim().slice(0, 80)}`;
  throw new NoAnswer(
    "The answer was cut off, or did not come from this server.",
    method === "GET" ? explanation : `${explanation} ${UNKNOWN_OUTCOME}`,
    method === "GET",
  );
}

/** undefined for text that is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isEnvelope(value: unknown): value is { message: string; detail?: string } {
  return (
    typeof value === "object" &&
    value !== null &&
    "message" in value &&
    typeof value.message === "string"
  );
}

export const get = <T>(path: string): Promise<T> => request<T>("GET", path);
export const post = <T>(path: string, body?: unknown): Promise<T> => request<T>("POST", path, body);
export const put = <T>(path: string, body?: unknown): Promise<T> => request<T>("PUT", path, body);
export const patch = <T>(path: string, body?: unknown): Promise<T> =>
  request<T>("PATCH", path, body);
export const remove = <T>(path: string, body?: unknown): Promise<T> =>
  request<T>("DELETE", path, body);

const NOT_FOUND = 404;

/** Delete, where what is gone already needs no deletion: another page or the server was faster. */
export async function removeIfPresent(path: string): Promise<void> {
  try {
    await remove(path);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== NOT_FOUND) throw error;
  }
}

/** Send bytes, receive JSON: template archives. */
export function upload<T>(path: string, body: Blob, type: string): Promise<T> {
  const headers = { Accept: "application/json", "Content-Type": type, "X-CSRF-TOKEN": csrfToken() };
  return answered("bytes", true, async (signal) =>
    readAnswer<T>(
      await fetch(path, { method: "POST", headers, credentials: "same-origin", body, signal }),
      "POST",
      path,
    ),
  );
}

export function getBytes(path: string): Promise<Uint8Array> {
  return answered("bytes", false, async (signal) => {
    const response = await fetch(path, { credentials: "same-origin", signal });
    return response.ok
      ? new Uint8Array(await response.arrayBuffer())
      : readAnswer<never>(response, "GET", path);
  });
}

/** Send JSON, receive bytes: an archive that the server makes. */
export function postForBytes(path: string, body: unknown): Promise<Uint8Array> {
  const headers = { "Content-Type": "application/json", "X-CSRF-TOKEN": csrfToken() };
  return answered("bytes", false, async (signal) => {
    const response = await fetch(path, {
      method: "POST",
      headers,
      credentials: "same-origin",
      body: JSON.stringify(body),
      signal,
    });
    return response.ok
      ? new Uint8Array(await response.arrayBuffer())
      : readAnswer<never>(response, "POST", path);
  });
}

/** `path?name=value&…`, without undefined and empty values. */
export function withQuery(
  path: string,
  values: Record<string, string | number | boolean | undefined>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** Escape one segment of a path. */
export const seg = (value: string): string => encodeURIComponent(value);

export function socketUrl(path: string): string {
  const base = new URL(path, window.location.href);
  base.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  return base.toString();
}
