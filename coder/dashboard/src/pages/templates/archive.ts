// Files of a version, and new versions from files.
import { queryOptions } from "@tanstack/react-query";

import { get, getBytes, post, upload } from "../../api/client";
import type {
  CreateTemplateVersionRequest,
  TemplateVersion,
  UploadResponse,
} from "../../api/types";
import { readTar, writeTar, type ArchiveFile } from "./tar";

export const archiveOf = (file: string) =>
  queryOptions({
    queryKey: ["files", file],
    queryFn: async () => readTar(await getBytes(`/api/v2/files/${file}`)),
    staleTime: Infinity,
  });

/** The README among a template's files; empty if there is none. */
export function readmeOf(files: readonly ArchiveFile[]): string {
  const readme = files.find((file) => file.path.toLowerCase() === "readme.md");
  return (readme && textOf(readme)) ?? "";
}

export async function uploadFiles(files: readonly ArchiveFile[]): Promise<string> {
  const body = writeTar(files);
  return (
    await upload<UploadResponse>("/api/v2/files", new Blob([body as BlobPart]), "application/x-tar")
  ).hash;
}

export function createVersion(
  organization: string,
  body: Partial<CreateTemplateVersionRequest>,
): Promise<TemplateVersion> {
  return post<TemplateVersion>(`/api/v2/organizations/${organization}/templateversions`, {
    storage_method: "file",
    provisioner: "terraform",
    tags: {},
    ...body,
  });
}

const POLL_MS = 800;

/**
 * Wait until a version is imported, and return its final state. `onProgress` is called with each
 * intermediate state, such as running or canceling.
 */
export async function waitForImport(
  id: string,
  onProgress: (version: TemplateVersion) => void = () => undefined,
): Promise<TemplateVersion> {
  for (;;) {
    const version = await get<TemplateVersion>(`/api/v2/templateversions/${id}`);
    if (!["pending", "running", "canceling"].includes(version.job.status)) return version;
    onProgress(version);
    await new Promise((resolve) => window.setTimeout(resolve, POLL_MS));
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The text of a file; null for binary files. */
export function textOf(file: ArchiveFile): string | null {
  try {
    const text = decoder.decode(file.data);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
