// Why a job waits: what each provisioner says of it, when it may start, and the command that would take it.
import { useQuery } from "@tanstack/react-query";

import { put } from "../../api/client";
import { jobWhy } from "../../api/queries/workspaces";
import { CodeBox } from "../../ui/text/CodeBox";
import { Failure } from "../../ui/Failure";
import { useChoice } from "../../ui/forms/choice";
import { Switch } from "../../ui/forms/Toggle";
import { Skeleton } from "../../ui/Loading";
import { TextLink } from "../../ui/Page";
import { ago } from "../../lib/time";
import { counted } from "../../lib/words";

/** The server's reasons are clauses: one that stands alone begins and ends like a sentence. */
const sentence = (clause: string) =>
  clause === ""
    ? ""
    : `${clause.charAt(0).toUpperCase()}${clause.slice(1)}${clause.endsWith(".") ? "" : "."}`;

export function JobReasons({
  organization,
  job,
  home,
}: {
  organization: string;
  job: string;
  home: string;
}) {
  const why = useQuery(jobWhy(organization, job));
  const { value: parked, choose: park } = useChoice(why.data?.parked ?? false, {
    send: (on) =>
      put(`/api/v2/organizations/${organization}/provisionerjobs/${job}/parked`, { parked: on }),
    seen: ["provisionerjobs", job],
    failed: "The job could not be changed",
  });
  if (why.isPending) return <Skeleton className="h-16" />;
  if (why.isLoadingError) return <Failure error={why.error} retry={() => void why.refetch()} />;
  const { daemons, expected_start: start, no_expected_start: unknown, remedy } = why.data;
  return (
    <section aria-label="Why it waits" className="flex flex-col gap-3">
      <p className="text-sm text-muted">
        {start
          ? `It starts ${ago(start.earliest)} at the earliest, ${ago(start.latest)} at the ` +
            `latest, as ${counted(start.samples, "job before it tells", "jobs before it tell")}.`
          : sentence(unknown)}
      </p>
      {daemons.length > 0 ? (
        <ul
          aria-label="What each provisioner says"
          className="divide-y divide-line rounded-lg border border-line bg-surface"
        >
          {daemons.map((daemon) => (
            <li key={daemon.daemon_id} className="px-3 py-2">
              <TextLink to={`${home}/provisioners?ids=${daemon.daemon_id}`}>
                {daemon.daemon_name}
              </TextLink>
              <p className="text-sm text-muted [overflow-wrap:anywhere]">
                {sentence(daemon.message)}
              </p>
            </li>
          ))}
        </ul>
      ) : null}
      {remedy ? (
        <div>
          <p className="mb-1.5">A provisioner started like this takes it:</p>
          <CodeBox label="Command that starts a provisioner" command={remedy.command} />
          {remedy.notes.length > 0 ? (
            <ul className="mt-1.5 list-disc pl-5 text-sm text-muted">
              {remedy.notes.map((note) => (
                <li key={note}>{note}</li>
              ))}
            </ul>
          ) : null}
        </div>
      ) : null}
      <Switch
        label="Wait without limit"
        hint="Otherwise a job nobody takes fails after a while."
        checked={parked}
        onChange={park}
      />
    </section>
  );
}
