// The reason why a job has not started: the server explains, and names the remedy. A provisioner
// administrator gets a link to the queue.
import { useQuery } from "@tanstack/react-query";
import { ExternalLink } from "lucide-react";

import { jobReasons } from "../../api/queries/workspaces";
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
  const linkProps = staying ? { target: "_blank", icon: <ExternalLink aria-hidden="true" /> } : {};
  const reasons = useQuery(jobReasons(organization, job.id)).data;
  const home = useOrganizationOf(organization);
  const position =
    job.queue_position > 0
      ? `Position ${job.queue_position} of ${job.queue_size} in the queue.`
      : "";
  // A provisioner acquired the job since the last poll: it does not wait any more.
  if (reasons?.verdict === "not_waiting") return null;
  return (
    <Notice
      kind={STUCK.has(reasons?.verdict ?? "") ? "warning" : "info"}
      title={reasons?.summary ?? "This build is waiting for a provisioner"}
      actions={
        home?.may.viewJobs ? (
          <>
            <ButtonLink {...linkProps} size="sm" to={`${home.home}/provisioner-jobs?ids=${job.id}`}>
              View queue
            </ButtonLink>
            {home.may.viewDaemons ? (
              <ButtonLink {...linkProps} size="sm" variant="quiet" to={`${home.home}/provisioners`}>
                View provisioners
              </ButtonLink>
            ) : null}
          </>
        ) : null
      }
    >
      {position ? <p>{position}</p> : null}
      {reasons?.remedy ? (
        <div className="mt-1.5 flex flex-col gap-1.5">
          {reasons.remedy.notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
          {reasons.remedy.command ? (
            <p>
              {home?.may.viewJobs === false
                ? "A provisioner administrator can start a matching one:"
                : "Start a matching provisioner on a machine that is signed in (coder login):"}
            </p>
          ) : null}
          {reasons.remedy.command ? (
            <CodeBox
              label="Command that starts a matching provisioner"
              command={reasons.remedy.command}
            />
          ) : null}
        </div>
      ) : null}
    </Notice>
  );
}
