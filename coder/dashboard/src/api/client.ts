// One way to the API: JSON in, JSON out, the error envelope as an exception. Nothing here knows a page.
import { inTurn } from "./turns";

export class ApiError extends Error {
  readonly status: number;
  readonly detail: string;
  readonly validations: readonly { field: string; detail: string }[];

  constructor(status: number, body: { message?: string; detail?: string; validations?: { field: string; detail: string }[] }) {
    super(body.message ?? `The server answered with status ${status}.`);
    this.status = status;
    this.detail = body.detail ?? "";
    this.validations = body.validations ?? [];
  }
}

// The server sets a CSRF cookie that scripts cannot read; pages carry the matching token in a meta element.
function csrfToken(): string {
  return document.querySelector<HTMLMetaElement>('meta[property="csrf-token"]')?.content ?? "";
}

/** Methods that say how a thing is to be from now on: the last one counts, so it has to come last. */
const IN_TURN: ReadonlySet<string> = new Set(["PUT", "PATCH"]);

export function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  return IN_TURN.has(method) ? inTurn(path, () => send<T>(method, path, body)) : send<T>(method, path, body);
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
  if (method !== "GET") headers["X-CSRF-TOKEN"] = csrfToken();
  const text = body === undefined ? "" : JSON.stringify(body);
  const init: RequestInit = { method, headers, credentials: "same-origin", ...(body === undefined ? {} : { body: text }) };
  return readAnswer<T>(await (method === "GET" ? fetch(path, init) : sendOnce(path, init, text)));
}

async function readAnswer<T>(response: Response): Promise<T> {
  const text = await response.text();
  const value: unknown = text === "" ? undefined : parse(text);
  if (!response.ok) throw new ApiError(response.status, isEnvelope(value) ? value : {});
  return value as T;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isEnvelope(value: unknown): value is { message: string; detail?: string } {
  return typeof value === "object" && value !== null && "message" in value;
}

export const get = <T>(path: string): Promise<T> => request<T>("GET", path);
export const post = <T>(path: string, body?: unknown): Promise<T> => request<T>("POST", path, body);
export const put = <T>(path: string, body?: unknown): Promise<T> => request<T>("PUT", path, body);
export const patch = <T>(path: string, body?: unknown): Promise<T> => request<T>("PATCH", path, body);
export const remove = <T>(path: string, body?: unknown): Promise<T> => request<T>("DELETE", path, body);

/** Bytes up, JSON down: template archives. */
export async function upload<T>(path: string, body: Blob, type: string): Promise<T> {
  const response = await fetch(path, {
    method: "POST",
    headers: { Accept: "application/json", "Content-Type": type, "X-CSRF-TOKEN": csrfToken() },
    credentials: "same-origin",
    body,
  });
  return readAnswer<T>(response);
}

export async function getBytes(path: string): Promise<Uint8Array> {
  const response = await fetch(path, { credentials: "same-origin" });
  if (!response.ok) return readAnswer<never>(response);
  return new Uint8Array(await response.arrayBuffer());
}

/** `path?name=value&…`, without what is undefined or empty. */
export function withQuery(path: string, values: Record<string, string | number | boolean | undefined>): string {
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
