// The reason why a job has not started: the server explains, and names the remedy. A provisioner
// administrator gets a link to the queue.
import { useQuery } from "@tanstack/react-query";
import { ExternalLink } from "lucide-react";

import { jobWhy } from "../../api/queries/workspaces";
import type { ProvisionerJob } from "../../api/types";
import { ButtonLink } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import { CodeBox } from "../../ui/text/CodeBox";
import { useOrganizationOf } from "../organization/useOrganization";

/** Reasons that waiting alone does not resolve. */
const STUCK: ReadonlySet<string> = new Set(["nobody", "all_offline"]);

interface WaitingNoticeProps {
  organization: string;
  job: Pick<ProvisionerJob, "id" | "queue_position" | "queue_size">;
  /** The page would lose input or even the job if the user left it: its links open in a new tab. */
  staying?: boolean;
}

export function WaitingNotice({ organization, job, staying = false }: WaitingNoticeProps) {
  const beside = staying ? { target: "_blank", icon: <ExternalLink aria-hidden="true" /> } : {};
  const why = useQuery(jobWhy(organization, job.id)).data;
  const home = useOrganizationOf(organization);
  const place =
    job.queue_position > 0
      ? `Position ${job.queue_position} of ${job.queue_size} in the queue.`
      : "";
  // A provisioner acquired the job since the last poll: it does not wait any more.
  if (why?.verdict === "not_waiting") return null;
  return (
    <Notice
      kind={STUCK.has(why?.verdict ?? "") ? "warning" : "info"}
      title={why?.summary ?? "This build is waiting for a provisioner"}
      actions={
        home?.may.viewJobs ? (
          <>
            <ButtonLink {...beside} size="sm" to={`${home.home}/provisioner-jobs?ids=${job.id}`}>
              View queue
            </ButtonLink>
            {home.may.viewDaemons ? (
              <ButtonLink {...beside} size="sm" look="quiet" to={`${home.home}/provisioners`}>
                View provisioners
              </ButtonLink>
            ) : null}
          </>
        ) : null
      }
    >
      {place ? <p>{place}</p> : null}
      {why?.remedy ? (
        <div className="mt-1.5 flex flex-col gap-1.5">
          {why.remedy.notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
          {why.remedy.command ? (
            <p>
              {home?.may.viewJobs === false
                ? "A provisioner administrator can start a matching one:"
                : "Start a matching provisioner on a machine that is signed in (coder login):"}
            </p>
          ) : null}
          {why.remedy.command ? (
            <CodeBox
              label="Command that starts a matching provisioner"
              command={why.remedy.command}
            />
          ) : null}
        </div>
      ) : null}
    </Notice>
  );
}
