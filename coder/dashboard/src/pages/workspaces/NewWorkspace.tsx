// The "New workspace" button with a template picker.
import { useQuery } from "@tanstack/react-query";
import { LayoutTemplate, Plus, Search, Server } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";

import {
  NO_WORKSPACES_ANYWHERE,
  useMayCreateWorkspace,
  usePermissions,
} from "../../api/permissions";
import { templates } from "../../api/queries/templates";
import type { Template } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { Loading } from "../../ui/Loading";
import { Popover } from "../../ui/Popover";
import { templatePath } from "../../features/template/paths";
import { usedBy } from "../../lib/words";

export function NewWorkspace() {
  const [open, setOpen] = useState(false);
  const may = usePermissions();
  if (!may.known) return <span aria-hidden="true" className="h-8.5" />; // the button's row on a phone
  if (!may.createOwnWorkspace && !may.createWorkspaceForAny)
    return <span className="text-sm text-muted">{NO_WORKSPACES_ANYWHERE}</span>;
  return (
    <Popover
      label="Choose a template"
      open={open}
      onOpenChange={setOpen}
      className="w-90"
      trigger={
        <Button variant="primary" icon={<Plus />}>
          New workspace
        </Button>
      }
    >
      <Picker onDone={() => setOpen(false)} />
    </Popover>
  );
}

function Picker({ onDone }: { onDone: () => void }) {
  const [text, setText] = useState("");
  const may = usePermissions();
  const list = useQuery(templates());
  const needle = text.trim().toLowerCase();
  const matches = (list.data ?? []).filter(
    (template) =>
      !template.deprecated &&
      `${template.name} ${template.display_name}`.toLowerCase().includes(needle),
  );
  return (
    <>
      <div className="relative border-b border-line">
        <Search
          className="pointer-events-none absolute top-1/2 left-3 size-4 -translate-y-1/2 text-faint"
          aria-hidden="true"
        />
        <input
          type="search"
          aria-label="Search templates"
          placeholder="Search templates"
          value={text}
          onChange={(event) => setText(event.target.value)}
          autoFocus
          className="h-10 w-full bg-transparent pr-3 pl-9 text-base underlined"
        />
      </div>
      {list.isPending ? <Loading /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      <ul aria-label="Templates" className="max-h-80 overflow-y-auto p-1">
        {matches.map((template) => (
          <Choice key={template.id} template={template} onDone={onDone} />
        ))}
      </ul>
      {list.data && matches.length === 0 ? (
        <p className="px-3 pb-3 text-sm text-muted">
          {list.data.length === 0 ? "There are no templates yet." : "No results"}
        </p>
      ) : null}
      <div className="border-t border-line p-1">
        {may.createAnyTemplate && list.data?.length === 0 ? (
          <Link
            to="/templates/new"
            onClick={onDone}
            className="flex items-center gap-2 rounded-md px-2.5 py-2 text-sm font-medium hover:bg-hover"
          >
            <LayoutTemplate className="size-4 text-muted" aria-hidden="true" />
            Create a template
          </Link>
        ) : null}
        <Link
          to="/workspaces/attach"
          onClick={onDone}
          className="flex items-center gap-2 rounded-md px-2.5 py-2 text-sm font-medium hover:bg-hover"
        >
          <Server className="size-4 text-muted" aria-hidden="true" />
          Attach a machine
        </Link>
        <Link
          to="/templates"
          onClick={onDone}
          className="block rounded-md px-2.5 py-2 text-sm font-medium text-muted hover:bg-hover hover:text-text"
        >
          View all templates
        </Link>
      </div>
    </>
  );
}

/**
 * A template of an organization where the user may not create workspaces is listed with that
 * reason.
 */
function Choice({ template, onDone }: { template: Template; onDone: () => void }) {
  const mayCreate = useMayCreateWorkspace(template.organization_id);
  const body = (
    <>
      <Avatar name={template.name} src={template.icon} square />
      <span className="min-w-0">
        <span className="block truncate font-medium">{template.display_name || template.name}</span>
        <span className="block truncate text-sm text-muted">
          {mayCreate === false
            ? `You cannot create workspaces in ${template.organization_display_name || template.organization_name}`
            : `Used by ${usedBy(template.active_user_count)}`}
        </span>
      </span>
    </>
  );
  const itemClass = "flex items-center gap-3 rounded-md px-2.5 py-2";
  return (
    <li>
      {mayCreate ? (
        <Link
          to={`${templatePath(template)}/workspace`}
          onClick={onDone}
          className={`${itemClass} hover:bg-hover focus-visible:bg-hover`}
        >
          {body}
        </Link>
      ) : (
        <span className={itemClass}>{body}</span>
      )}
    </li>
  );
}
