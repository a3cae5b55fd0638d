import { useQuery } from "@tanstack/react-query";

import { templates } from "../api/queries";
import { Notice } from "../components/Notice";
import { ago } from "../components/time";

export function TemplatesPage() {
  const list = useQuery(templates);
  return (
    <>
      <div className="head"><h1>Templates</h1></div>
      {list.isError ? <Notice kind="error" title={list.error.message} /> : null}
      {list.data?.length === 0 ? (
        <div className="empty">
          <h2>No templates yet</h2>
          <p>A template describes workspaces in Terraform. Start with an example:</p>
          <pre>coder templates init{"\n"}coder templates push</pre>
        </div>
      ) : null}
      {list.data && list.data.length > 0 ? (
        <table>
          <thead><tr><th>Name</th><th>Used by</th><th>Last updated</th></tr></thead>
          <tbody>
            {list.data.map((template) => (
              <tr key={template.id}>
                <td>
                  <strong>{template.display_name || template.name}</strong>
                  <div className="faint">{template.description}</div>
                </td>
                <td>{template.active_user_count < 0 ? "—" : `${template.active_user_count} developers`}</td>
                <td>{ago(template.updated_at)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </>
  );
}
