// The list of workspaces; it updates itself. What is looked for and which page is shown are in the address.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useSearchParams } from "react-router";

import { PAGE_SIZE, workspaces } from "../api/queries";
import type { Workspace } from "../api/types";
import { Failure } from "../components/Failure";
import { Loading } from "../components/Loading";
import { WorkspaceBadge } from "../components/StatusBadge";
import { ago } from "../components/time";
import { useTitle } from "../components/title";

const MINE = "owner:me";
const PRESETS: readonly (readonly [string, string])[] = [
  ["My workspaces", MINE],
  ["All workspaces", ""],
  ["Running", "status:running"],
  ["Failed", "status:failed"],
  ["Outdated", "outdated:true"],
];
const SETTLE_MS = 250; // a person is still typing

export function WorkspacesPage() {
  useTitle("Workspaces");
  const { filter, page, show } = useShown();
  const list = useQuery({ ...workspaces(filter, page), placeholderData: keepPreviousData });
  const found = list.data; // a refresh that failed leaves what was there
  return (
    <>
      <div className="head">
        <h1>Workspaces</h1>
        <span className="faint" role="status">{found ? `${found.count} in total` : ""}</span>
      </div>
      <Search filter={filter} onChange={(next) => show(next, 1)} />
      {list.isPending ? <Loading /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {found?.workspaces.length === 0 ? <Empty filtered={filter !== MINE && filter !== ""} /> : null}
      {found && found.workspaces.length > 0 ? (
        <table aria-label="Workspaces">
          <thead>
            <tr>
              <th scope="col">Name</th><th scope="col" className="extra">Template</th><th scope="col">Status</th>
              <th scope="col" className="extra">Last built</th>
            </tr>
          </thead>
          <tbody>{found.workspaces.map((workspace) => <Row key={workspace.id} workspace={workspace} />)}</tbody>
        </table>
      ) : null}
      {found && (found.count > PAGE_SIZE || page > 1) ? (
        <nav className="pages" aria-label="Pages">
          <button type="button" disabled={page <= 1} onClick={() => show(filter, page - 1)}>Previous</button>
          <span className="faint">Page {page} of {Math.max(1, Math.ceil(found.count / PAGE_SIZE))}</span>
          <button type="button" disabled={page * PAGE_SIZE >= found.count} onClick={() => show(filter, page + 1)}>Next</button>
        </nav>
      ) : null}
    </>
  );
}

function useShown() {
  const [params, setParams] = useSearchParams();
  const show = (filter: string, page: number) =>
    setParams({ ...(filter === MINE ? {} : { filter }), ...(page > 1 ? { page: String(page) } : {}) }, { replace: true });
  return { filter: params.get("filter") ?? MINE, page: Math.max(1, Math.trunc(Number(params.get("page"))) || 1), show };
}

function Search({ filter, onChange }: { filter: string; onChange: (filter: string) => void }) {
  const [text, setText] = useState(filter);
  useEffect(() => setText(filter), [filter]);
  useEffect(() => {
    if (text === filter) return;
    const timer = window.setTimeout(() => onChange(text), SETTLE_MS);
    return () => window.clearTimeout(timer);
  });
  return (
    <div className="searching" role="search">
      <input className="search" type="search" aria-label="Search workspaces" value={text} spellCheck={false}
        placeholder="owner:me status:running name:…" onChange={(event) => setText(event.target.value)} />
      <div className="presets" role="group" aria-label="Common searches">
        {PRESETS.map(([label, query]) => (
          <button key={label} type="button" className="chip" aria-pressed={filter === query} onClick={() => onChange(query)}>{label}</button>
        ))}
      </div>
    </div>
  );
}

function Row({ workspace }: { workspace: Workspace }) {
  const template = workspace.template_display_name || workspace.template_name;
  return (
    <tr data-testid={`workspace-${workspace.name}`}>
      <td>
        <Link to={`/@${workspace.owner_name}/${workspace.name}`}><strong>{workspace.name}</strong></Link>
        <div className="faint">{workspace.owner_name}<span className="only-narrow"> · {template}</span></div>
      </td>
      <td className="extra">
        {template}
        {workspace.latest_build.has_external_agent ? <span className="tag">External</span> : null}
        {workspace.outdated ? <span className="tag warn">Outdated</span> : null}
      </td>
      <td><WorkspaceBadge workspace={workspace} /></td>
      <td className="extra"><time dateTime={workspace.latest_build.created_at}>{ago(workspace.latest_build.created_at)}</time></td>
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
