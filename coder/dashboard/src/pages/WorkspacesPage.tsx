// The list of workspaces; it updates itself.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";

import { workspaces } from "../api/queries";
import type { Workspace } from "../api/types";
import { Notice } from "../components/Notice";
import { WorkspaceBadge } from "../components/StatusBadge";
import { ago } from "../components/time";

export function WorkspacesPage() {
  const [query, setQuery] = useState("owner:me");
  const list = useQuery({ ...workspaces(query), placeholderData: keepPreviousData });
  return (
    <>
      <div className="head">
        <h1>Workspaces</h1>
        <span className="faint">{list.data ? `${list.data.count} in total` : ""}</span>
      </div>
      <input className="search" type="search" aria-label="Search workspaces" value={query} spellCheck={false}
        onChange={(event) => setQuery(event.target.value)} />
      {list.isError ? <Notice kind="error" title={list.error.message} /> : null}
      {list.data && list.data.workspaces.length === 0 ? <Empty filtered={query !== "owner:me"} /> : null}
      {list.data && list.data.workspaces.length > 0 ? (
        <table>
          <thead><tr><th>Name</th><th>Template</th><th>Status</th><th>Last built</th></tr></thead>
          <tbody>{list.data.workspaces.map((workspace) => <Row key={workspace.id} workspace={workspace} />)}</tbody>
        </table>
      ) : null}
    </>
  );
}

function Row({ workspace }: { workspace: Workspace }) {
  return (
    <tr data-testid={`workspace-${workspace.name}`}>
      <td>
        <Link to={`/@${workspace.owner_name}/${workspace.name}`}><strong>{workspace.name}</strong></Link>
        <div className="faint">{workspace.owner_name}</div>
      </td>
      <td>
        {workspace.template_display_name || workspace.template_name}
        {workspace.latest_build.has_external_agent ? <span className="tag">External</span> : null}
        {workspace.outdated ? <span className="tag warn">Outdated</span> : null}
      </td>
      <td><WorkspaceBadge workspace={workspace} /></td>
      <td>{ago(workspace.latest_build.created_at)}</td>
    </tr>
  );
}

function Empty({ filtered }: { filtered: boolean }) {
  return (
    <div className="empty">
      <h2>{filtered ? "Nothing matches" : "No workspaces yet"}</h2>
      {filtered ? <p>Change the search above, or clear it to see everything.</p> : (
        <>
          <p>Create one from a template, or attach a machine you already have:</p>
          <pre>coder create my-workspace{"\n"}coder external-workspaces create my-machine --template=externally-managed-workspace</pre>
        </>
      )}
    </div>
  );
}
