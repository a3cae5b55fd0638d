// A resource of a workspace or a version with its metadata.
import { Eye, EyeOff } from "lucide-react";
import { useState } from "react";

import type { WorkspaceResource, WorkspaceResourceMetadata } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { IconButton } from "../../ui/Button";
import { CopyButton } from "../../ui/text/CodeBox";

export function ResourceRow({ resource }: { resource: WorkspaceResource }) {
  const facts = (resource.metadata ?? []).filter(
    (item) => item.key !== "type" && item.value !== "",
  );
  return (
    <div className="flex flex-wrap items-center gap-x-8 gap-y-3 rounded-xl border border-line bg-surface px-4 py-3">
      <div className="flex min-w-40 items-center gap-3">
        <Avatar name={resource.type} src={resource.icon} square />
        <div className="min-w-0">
          <p className="text-sm text-muted">{resource.type}</p>
          <p className="font-medium [overflow-wrap:anywhere]">{resource.name}</p>
        </div>
      </div>
      {facts.length > 0 ? (
        <dl className="flex flex-wrap gap-x-8 gap-y-2">
          {facts.map((item) => (
            <Fact key={item.key} item={item} />
          ))}
        </dl>
      ) : null}
      {resource.daily_cost > 0 ? (
        <span className="ml-auto">
          <Tag title="Counts towards the owner's daily quota.">{resource.daily_cost} per day</Tag>
        </span>
      ) : null}
    </div>
  );
}

function Fact({ item }: { item: WorkspaceResourceMetadata }) {
  const [shown, setShown] = useState(!item.sensitive);
  return (
    <div className="min-w-0">
      <dt className="text-sm text-muted">{item.key}</dt>
      <dd className="flex items-center gap-1 font-medium">
        <span className="max-w-72 truncate lg:max-w-128" title={shown ? item.value : undefined}>
          {shown ? item.value : "••••••••"}
        </span>
        {item.sensitive ? (
          <IconButton
            size="sm"
            label={shown ? `Hide ${item.key}` : `Show ${item.key}`}
            onClick={() => setShown(!shown)}
          >
            {shown ? <EyeOff /> : <Eye />}
          </IconButton>
        ) : null}
        <CopyButton iconOnly text={item.value} label={`Copy ${item.key}`} />
      </dd>
    </div>
  );
}
