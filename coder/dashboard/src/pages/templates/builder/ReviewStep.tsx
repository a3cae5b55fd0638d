// The last step of the template builder: the composed files, which the user may change before the
// template is created.
import { lazy, Suspense, useState } from "react";

import { Button } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { Stack } from "../../../ui/Page";
import { uploadFiles } from "../archive";
import { useEditedFiles } from "../editor/useEditedFiles";
import { FileTree } from "../FileTree";
import type { ArchiveFile } from "../tar";

const CodeEditor = lazy(() => import("../../../ui/text/CodeEditor"));

export function ReviewStep({
  files,
  onBack,
  onUploaded,
}: {
  files: readonly ArchiveFile[];
  onBack: () => void;
  onUploaded: (file: string, files: readonly ArchiveFile[]) => void;
}) {
  const edited = useEditedFiles(files);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const upload = async () => {
    setBusy(true);
    setError(null);
    try {
      const archive = edited.archive();
      onUploaded(await uploadFiles(archive), archive);
    } catch (caught) {
      setError(caught instanceof Error ? caught : new Error(String(caught)));
      setBusy(false);
    }
  };
  return (
    <Stack>
      {error ? <Failure error={error} title="Failed to upload the files" /> : null}
      <p className="text-muted">
        These are the files of the template. Change them here, or later in the editor of the
        template. Going back composes them again, without your changes.
      </p>
      <div className="grid grid-cols-[17rem_minmax(0,1fr)] overflow-hidden rounded-xl border border-line bg-surface max-md:grid-cols-1">
        <div className="border-r border-line max-md:border-r-0 max-md:border-b">
          <FileTree
            paths={[...edited.current.keys()]}
            shown={edited.path}
            onShow={edited.show}
            marks={edited.marks}
          />
        </div>
        <div className="h-[clamp(18rem,calc(100dvh-22rem),60rem)]">
          {edited.text === null ? (
            <p className="p-6 text-muted">This file is binary.</p>
          ) : (
            <Suspense fallback={<SkeletonRows rows={4} />}>
              <CodeEditor
                key={edited.path}
                path={edited.path}
                text={edited.text}
                label={edited.path}
                onChange={edited.write}
              />
            </Suspense>
          )}
        </div>
      </div>
      <div className="flex flex-wrap justify-end gap-2">
        <Button disabled={busy} onClick={onBack}>
          Back
        </Button>
        <Button variant="primary" busy={busy} onClick={() => void upload()}>
          Continue
        </Button>
      </div>
    </Stack>
  );
}
