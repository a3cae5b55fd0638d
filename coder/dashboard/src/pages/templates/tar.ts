// Template archives in the browser: plain ustar, the server's storage format.
export interface ArchiveFile {
  path: string;
  data: Uint8Array;
  executable?: boolean;
}

const BLOCK = 512;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function readTar(bytes: Uint8Array): ArchiveFile[] {
  const files: ArchiveFile[] = [];
  let longName = "";
  for (let at = 0; at + BLOCK <= bytes.length;) {
    const head = bytes.subarray(at, at + BLOCK);
    if (head.every((byte) => byte === 0)) break;
    const size = parseInt(text(head, 124, 12).trim(), 8) || 0;
    const kind = String.fromCharCode(head[156] ?? 0);
    const data = bytes.subarray(at + BLOCK, at + BLOCK + size);
    const prefix = text(head, 257, 5) === "ustar" ? text(head, 345, 155) : "";
    const name = longName || (prefix ? `${prefix}/` : "") + text(head, 0, 100);
    longName = "";
    if (kind === "L") longName = decoder.decode(data).replace(/\0.*$/s, "");
    else if (kind === "x") longName = paxPath(decoder.decode(data));
    else if (kind === "0" || kind === "\0") {
      const executable = (parseInt(text(head, 100, 8).trim(), 8) & 0o100) !== 0;
      files.push({ path: clean(name), data: data.slice(), ...(executable && { executable }) });
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files.filter((file) => file.path !== "");
}

export function writeTar(files: readonly ArchiveFile[], now: number = Date.now()): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const file of [...files].sort((a, b) => a.path.localeCompare(b.path))) {
    if (encoder.encode(file.path).length > 100) {
      // The pax record: "length path=name\n", where length includes itself.
      const record = paxRecord(file.path);
      parts.push(header("PaxHeader", record.length, "x", now), padded(record));
    }
    const mode = file.executable ? 0o755 : 0o644;
    parts.push(header(file.path, file.data.length, "0", now, mode), padded(file.data));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  const buffer = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    buffer.set(part, at);
    at += part.length;
  }
  return buffer;
}

function header(path: string, size: number, kind: string, now: number, mode = 0o644): Uint8Array {
  const head = new Uint8Array(BLOCK);
  const put = (at: number, value: string) => head.set(encoder.encode(value), at);
  head.set(encoder.encode(path).subarray(0, 100), 0);
  put(100, `${mode.toString(8).padStart(7, "0")}\0`);
  put(108, "0000000\0");
  put(116, "0000000\0");
  put(124, `${size.toString(8).padStart(11, "0")}\0`);
  put(
    136,
    `${Math.floor(now / 1000)
      .toString(8)
      .padStart(11, "0")}\0`,
  );
  put(148, "        ");
  put(156, kind);
  put(257, "ustar\u000000");
  const sum = head.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return head;
}

function padded(data: Uint8Array): Uint8Array {
  const buffer = new Uint8Array(Math.ceil(data.length / BLOCK) * BLOCK);
  buffer.set(data);
  return buffer;
}

function paxRecord(path: string): Uint8Array {
  const rest = encoder.encode(` path=${path}\n`).length;
  let length = rest + 1;
  while (String(length).length + rest !== length) length = String(length).length + rest;
  return encoder.encode(`${length} path=${path}\n`);
}

function paxPath(record: string): string {
  return /\d+ path=(.*)\n/.exec(record)?.[1] ?? "";
}

function text(bytes: Uint8Array, at: number, length: number): string {
  return decoder.decode(bytes.subarray(at, at + length)).replace(/\0.*$/s, "");
}

/** Neither absolute paths nor "..". */
function clean(path: string): string {
  return path
    .split("/")
    .filter((part) => part !== "" && part !== "." && part !== "..")
    .join("/");
}
