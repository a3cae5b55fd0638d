// Status reports of applications, newest first: mostly from agents of tasks.
import type { Workspace, WorkspaceAppStatus } from "../../../api/types";
import { Ago } from "../../../ui/Ago";
import { StatusText, type Tone } from "../../../ui/Badge";
import { agentsOf } from "../../../features/workspace/status";

const TONES: Record<WorkspaceAppStatus["state"], Tone> = {
  working: "busy",
  complete: "good",
  failure: "bad",
  idle: "idle",
};
const SHOWN = 8;

export function AppStatuses({ workspace }: { workspace: Workspace }) {
  const all = agentsOf(workspace)
    .flatMap((agent) => agent.apps.flatMap((app) => app.statuses))
    .sort((a, b) => b.created_at.localeCompare(a.created_at))
    .slice(0, SHOWN);
  if (all.length === 0) return null;
  return (
    <section aria-label="Activity">
      <h2 className="mb-1.5 text-sm font-medium text-muted">Activity</h2>
      <ol className="flex flex-col gap-2">
        {all.map((item) => (
          <li key={item.id} className="text-sm">
            <StatusText tone={TONES[item.state]} pulse={item.state === "working"}>
              {item.message || item.state}
            </StatusText>
            <p className="pl-4 text-xs text-muted">
              <Ago at={item.created_at} />
              {/^https?:/i.test(item.uri) ? (
                <>
                  {" "}
                  ·{" "}
                  <a className="underline" href={item.uri} target="_blank" rel="noreferrer">
                    Open
                  </a>
                </>
              ) : null}
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
