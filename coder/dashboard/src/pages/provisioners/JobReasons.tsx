// The reasons why a job waits: the answer of each provisioner, the expected start, and the command
// that starts a matching provisioner.
import { useQuery } from "@tanstack/react-query";

import { put } from "../../api/client";
import { jobReasons } from "../../api/queries/workspaces";
import { CodeBox } from "../../ui/text/CodeBox";
import { Failure } from "../../ui/Failure";
import { useChoice } from "../../ui/forms/choice";
import { Switch } from "../../ui/forms/Toggle";
import { Skeleton } from "../../ui/Loading";
import { TextLink } from "../../ui/Page";
import { ago } from "../../lib/time";
import { counted } from "../../lib/words";

/** The server's reasons are clauses: capitalize and punctuate one that stands alone. */
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
  const explanation = useQuery(jobReasons(organization, job));
  const { value: waitsForever, choose: setWaitsForever } = useChoice(
    explanation.data?.parked ?? false,
    {
      send: (on) =>
        put(`/api/v2/organizations/${organization}/provisionerjobs/${job}/parked`, { parked: on }),
      seen: ["provisionerjobs", job],
      failed: "Failed to update the job",
    },
  );
  if (explanation.isPending) return <Skeleton className="h-16" />;
  if (explanation.isLoadingError)
    return <Failure error={explanation.error} retry={() => void explanation.refetch()} />;
  const { daemons, expected_start: start, no_expected_start: unknown, remedy } = explanation.data;
  return (
    <section aria-label="Reasons for waiting" className="flex flex-col gap-3">
      <p className="text-sm text-muted">
        {start
          ? `Expected to start between ${ago(start.earliest)} and ` +
            `${ago(start.latest)}, based on ${counted(start.samples, "earlier job")}.`
          : sentence(unknown)}
      </p>
      {daemons.length > 0 ? (
        <ul
          aria-label="Reasons per provisioner"
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
          <p className="mb-1.5">Start a matching provisioner with:</p>
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
        label="Wait without a time limit"
        hint="If off, the job fails if no provisioner takes it within the queue’s time limit."
        checked={waitsForever}
        onChange={setWaitsForever}
      />
    </section>
  );
}
