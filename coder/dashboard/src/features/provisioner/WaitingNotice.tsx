// Why a job has not begun: the server explains, with what would end it. Whoever looks after the queue is led to it.
import { useQuery } from "@tanstack/react-query";
import { ExternalLink } from "lucide-react";

import { jobWhy } from "../../api/queries/workspaces";
import type { ProvisionerJob } from "../../api/types";
import { ButtonLink } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import { CodeBox } from "../../ui/text/CodeBox";
import { useOrganizationOf } from "../organization/useOrganization";

/** What waiting alone does not end. */
const STUCK: ReadonlySet<string> = new Set(["nobody", "all_offline"]);

interface WaitingNoticeProps {
  organization: string;
  job: Pick<ProvisionerJob, "id" | "queue_position" | "queue_size">;
  /** The page would lose something by being left, the job itself even: its links open beside it. */
  staying?: boolean;
}

export function WaitingNotice({ organization, job, staying = false }: WaitingNoticeProps) {
  const beside = staying ? { target: "_blank", icon: <ExternalLink aria-hidden="true" /> } : {};
  const why = useQuery(jobWhy(organization, job.id)).data;
  const home = useOrganizationOf(organization);
  const place =
    job.queue_position > 0
      ? `It is number ${job.queue_position} of ${job.queue_size} in the queue.`
      : "";
  // It was taken since the page last looked at it: there is nothing to wait for any more.
  if (why?.verdict === "not_waiting") return null;
  return (
    <Notice
      kind={STUCK.has(why?.verdict ?? "") ? "warning" : "info"}
      title={why?.summary ?? "This build waits for a provisioner."}
      actions={
        home?.may.viewJobs ? (
          <>
            <ButtonLink {...beside} size="sm" to={`${home.home}/provisioner-jobs?ids=${job.id}`}>
              Show in the queue
            </ButtonLink>
            {home.may.viewDaemons ? (
              <ButtonLink {...beside} size="sm" look="quiet" to={`${home.home}/provisioners`}>
                Provisioners
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
                ? "Whoever looks after the provisioners can start one that takes it:"
                : "A provisioner started like this takes it, on a machine that is signed in (coder login):"}
            </p>
          ) : null}
          {why.remedy.command ? (
            <CodeBox
              label="Command that starts a fitting provisioner"
              command={why.remedy.command}
            />
          ) : null}
        </div>
      ) : null}
    </Notice>
  );
}
