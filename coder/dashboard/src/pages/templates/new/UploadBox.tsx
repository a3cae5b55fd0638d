// The upload box for an archive of template files.
import { useQueryClient } from "@tanstack/react-query";
import { Upload } from "lucide-react";
import { useRef, useState } from "react";

import { upload } from "../../../api/client";
import type { UploadResponse } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { cx } from "../../../ui/cx";
import { toast } from "../../../ui/toast";
import { archiveOf, readmeOf } from "../archive";
import { frontMatter, type FrontMatter } from "../front-matter";

export interface Uploaded {
  hash: string;
  /** Name of the archive. */
  file: string;
  /** Proposed name of the template. */
  name: string;
  frontMatterFields: FrontMatter;
}

const TYPES: ReadonlyMap<string | undefined, string> = new Map([
  ["tar", "application/x-tar"],
  ["zip", "application/zip"],
]);

export function UploadBox({ onFile }: { onFile: (file: Uploaded) => void }) {
  const queries = useQueryClient();
  const input = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const [dragging, setDragging] = useState(false);
  const take = async (file: File | undefined) => {
    if (!file) return;
    const type = TYPES.get(file.name.toLowerCase().split(".").pop());
    if (!type) {
      toast.failed("Choose a .tar or .zip archive");
      return;
    }
    setBusy(true);
    try {
      const { hash } = await upload<UploadResponse>("/api/v2/files", file, type);
      // An empty optional field is no reason to reject an archive.
      const readme = await queries.fetchQuery(archiveOf(hash)).then(readmeOf, () => "");
      onFile({
        hash,
        file: file.name,
        frontMatterFields: frontMatter(readme),
        name: file.name
          .replace(/\.(tar|zip)$/i, "")
          .toLowerCase()
          .replace(/[^a-z0-9]+/g, "-")
          .replace(/^-|-$/g, "")
          .slice(0, 32),
      });
    } catch (error) {
      toast.failed("Failed to upload the archive", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div
      className={cx(
        "flex flex-col items-center gap-2 rounded-xl border border-dashed px-4 py-7",
        "text-center",
        dragging ? "border-accent bg-accent-soft" : "border-line-strong",
      )}
      onDragOver={(event) => {
        event.preventDefault();
        setDragging(true);
      }}
      onDragLeave={() => setDragging(false)}
      onDrop={(event) => {
        event.preventDefault();
        setDragging(false);
        void take(event.dataTransfer.files[0]);
      }}
    >
      <Upload className="size-5 text-muted" aria-hidden="true" />
      <p>
        Drop a <strong>.tar</strong> or <strong>.zip</strong> of Terraform files here
      </p>
      <Button busy={busy} onClick={() => input.current?.click()}>
        Choose archive
      </Button>
      <input
        ref={input}
        type="file"
        accept=".tar,.zip"
        className="sr-only"
        tabIndex={-1}
        aria-label="Archive of template files"
        data-testid="file-upload"
        onChange={(event) => void take(event.target.files?.[0])}
      />
    </div>
  );
}
