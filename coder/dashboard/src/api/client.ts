// One way to the API: JSON in, JSON out, the error envelope as an exception. Nothing here knows a page.
import { inTurn } from "./turns";

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

/** There is no answer that could be read: nothing came, too late, or cut off on the way. */
export class NoAnswer extends ApiError {
  /** Whether the same question may be asked again at once. Who has waited for a silent server waits no second time. */
  readonly again: boolean;

  constructor(message: string, detail: string, again: boolean) {
    super(0, { message, detail });
    this.again = again;
  }
}

/** What the server refused it refuses again; what failed on the way may come through. */
export function mayPass(error: Error): boolean {
  if (error instanceof NoAnswer) return error.again;
  return !(error instanceof ApiError) || error.status >= 500;
}

/** How long an answer may take, until its last byte. Archives of templates go over slow lines. */
export const LIMITS_MS = { question: 60_000, change: 120_000, bytes: 1_800_000 } as const;

const UNKNOWN_OUTCOME = "It may have been done all the same: look before you do it again.";

/** Asks, and says in plain words why there is no answer. */
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
        `The server has not answered within ${LIMITS_MS[kind] / 60_000} min.`,
        outcome,
        false,
      );
    if (error instanceof TypeError)
      throw new NoAnswer("The server cannot be reached.", outcome, true); // what fetch says for every failure of the network
    throw error;
  } finally {
    window.clearTimeout(timer);
  }
}

// The server sets a CSRF cookie that scripts cannot read; pages carry the matching token in a meta element.
function csrfToken(): string {
  return document.querySelector<HTMLMetaElement>('meta[property="csrf-token"]')?.content ?? "";
}

/** Methods that say how a thing is to be from now on: the last one counts, so it has to come last. */
const IN_TURN: ReadonlySet<string> = new Set(["PUT", "PATCH"]);

export function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  return IN_TURN.has(method)
    ? inTurn(path, () => send<T>(method, path, body))
    : send<T>(method, path, body);
}

// Browsers refuse requests that outlive their page beyond 64 KiB of bodies at a time.
const OUTLIVING_BYTES = 60_000;
let outliving = 0;

/** Does what was clicked although the page is left at once: without that the browser takes back what is on its way. */
async function sendOnce(path: string, init: RequestInit, body: string): Promise<Response> {
  const size = new TextEncoder().encode(body).length;
  if (outliving + size > OUTLIVING_BYTES) return fetch(path, init);
  outliving += size;
  try {
    return await fetch(path, { ...init, keepalive: true });
  } finally {
    outliving -= size;
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
const EMPTY_IS_DONE: ReadonlySet<number> = new Set([202, 204]);

const WHO_IS_HERE = "/api/v2/users/me"; // whose answer is just that
let hearSignedOut: () => void = () => undefined;

/** Told of every answer that says nobody is signed in, whoever asked: a form as well as a list. */
export function onSignedOut(hear: () => void): void {
  hearSignedOut = hear;
}

async function readAnswer<T>(response: Response, method: string, path: string): Promise<T> {
  if (response.status === UNAUTHORIZED && path !== WHO_IS_HERE) hearSignedOut();
  const text = await response.text();
  const value: unknown = parse(text);
  if (!response.ok) throw new ApiError(response.status, isEnvelope(value) ? value : {});
  if (value !== undefined) return value as T;
  if (text === "" && (method === "DELETE" || EMPTY_IS_DONE.has(response.status)))
    return undefined as T;
  const what = text === "" ? "It was empty." : `It began with: ${text.trim().slice(0, 80)}`;
  throw new NoAnswer(
    "The answer was cut off on its way, or is not from this server.",
    method === "GET" ? what : `${what} ${UNKNOWN_OUTCOME}`,
    method === "GET",
  );
}

/** undefined for what is no JSON. */
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

/** Bytes up, JSON down: template archives. */
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

/** `path?name=value&…`, without what is undefined or empty. */
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

/** One segment of a path. */
export const seg = (value: string): string => encodeURIComponent(value);

export function socketUrl(path: string): string {
  const base = new URL(path, window.location.href);
  base.protocol = base.protocol === "https:" ? "wss:" : "ws:";
  return base.toString();
}
