import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

import { readTar, writeTar } from "./tar";

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const FILES = [
  { path: "main.tf", data: bytes("resource {}\n") },
  { path: "empty", data: bytes("") },
  { path: "scripts/run.sh", data: bytes("x".repeat(1025)) },
  { path: `${"deep/".repeat(30)}name.tf`, data: bytes("long") },
];
const plain = (files: readonly { path: string; data: Uint8Array }[]) =>
  files.map((file) => [file.path, Buffer.from(file.data).toString()]).sort();

describe("template archives", () => {
  it("round-trip", () => {
    expect(plain(readTar(writeTar(FILES)))).toEqual(plain(FILES));
  });

  it("are compatible with tar in both directions", () => {
    const folder = mkdtempSync(join(tmpdir(), "tar-test-"));
    try {
      writeFileSync(join(folder, "made.tar"), writeTar(FILES));
      execFileSync("tar", ["xf", "made.tar"], { cwd: folder });
      for (const file of FILES)
        expect(readFileSync(join(folder, file.path))).toEqual(Buffer.from(file.data));
      execFileSync("tar", ["cf", "other.tar", ...FILES.map((file) => file.path)], { cwd: folder });
      expect(plain(readTar(new Uint8Array(readFileSync(join(folder, "other.tar")))))).toEqual(
        plain(FILES),
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("keep hidden files and execute permission", () => {
    const files = [
      { path: ".hidden/.env", data: bytes("x") },
      { path: "run.sh", data: bytes("x"), executable: true },
      { path: "terraform.tfstate", data: bytes("x") },
    ];
    expect(readTar(writeTar(files))).toEqual(files);
    const folder = mkdtempSync(join(tmpdir(), "tar-test-"));
    try {
      writeFileSync(join(folder, "made.tar"), writeTar(files));
      execFileSync("tar", ["xf", "made.tar"], { cwd: folder });
      expect(statSync(join(folder, "run.sh")).mode & 0o777).toBe(0o755);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("contain no path outside the archive", () => {
    expect(
      readTar(writeTar([{ path: "../../etc/passwd", data: bytes("x") }])).map((file) => file.path),
    ).toEqual(["etc/passwd"]);
  });
});
