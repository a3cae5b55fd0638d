// The uploaded archive of a new template, which the user may take back.
import { FileArchive, X } from "lucide-react";

import { IconButton } from "../../../ui/Button";

export function ArchiveFile({
  name,
  disabled,
  onRemove,
}: {
  name: string;
  disabled: boolean;
  onRemove: () => void;
}) {
  return (
    <div className="flex items-center gap-2 rounded-lg border border-line px-3 py-1.5">
      <FileArchive className="size-4 shrink-0 text-muted" aria-hidden="true" />
      <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">{name}</span>
      <IconButton label="Remove file" size="sm" disabled={disabled} onClick={onRemove}>
        <X />
      </IconButton>
    </div>
  );
}
