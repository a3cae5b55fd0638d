// The list of templates.
import { useQuery } from "@tanstack/react-query";

import { templates } from "../api/queries";
import type { Template } from "../api/types";
import { Failure } from "../components/Failure";
import { Loading } from "../components/Loading";
import { ago } from "../components/time";
import { useTitle } from "../components/title";

export function TemplatesPage() {
  useTitle("Templates");
  const list = useQuery(templates);
  return (
    <>
      <div className="head"><h1>Templates</h1></div>
      {list.isPending ? <Loading /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {list.data?.length === 0 ? (
        <div className="empty">
          <h2>No templates yet</h2>
          <p>A template describes workspaces in Terraform. Start with an example:</p>
          <pre>coder templates init{"\n"}coder templates push</pre>
        </div>
      ) : null}
      {list.data && list.data.length > 0 ? (
        <table aria-label="Templates">
          <thead><tr><th scope="col">Name</th><th scope="col">Used by</th><th scope="col" className="extra">Last updated</th></tr></thead>
          <tbody>{list.data.map((template) => <Row key={template.id} template={template} />)}</tbody>
        </table>
      ) : null}
    </>
  );
}

function Row({ template }: { template: Template }) {
  return (
    <tr>
      <td>
        <strong>{template.display_name || template.name}</strong>
        {template.deprecated ? <span className="tag warn">Deprecated</span> : null}
        <div className="faint">{template.description}</div>
      </td>
      <td className="short">{developers(template.active_user_count)}</td>
      <td className="extra"><time dateTime={template.updated_at}>{ago(template.updated_at)}</time></td>
    </tr>
  );
}

// The server says -1 where it does not know.
function developers(count: number): string {
  if (count < 0) return "—";
  return count === 1 ? "1 developer" : `${count} developers`;
}
