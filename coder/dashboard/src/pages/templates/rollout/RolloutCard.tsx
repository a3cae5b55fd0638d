// The template's open rollout: its stage, its counts, and the next steps. Earlier rollouts below it.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { patch } from "../../../api/client";
import { templateRollouts } from "../../../api/queries/templates";
import type { Template, TemplateRollout } from "../../../api/types";
import { Ago } from "../../../ui/Ago";
import { StatusText } from "../../../ui/Badge";
import { Button } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { Confirm } from "../../../ui/Confirm";
import { Failure } from "../../../ui/Failure";
import { Notice } from "../../../ui/Notice";
import { Stack } from "../../../ui/Page";
import { toast } from "../../../ui/toast";
import { isOpen, lostGroup, nextStage, reachOf, STATUS_TONES, STATUS_WORDS } from "./rollout";

type Action = "next" | "stop" | "resume" | "rollback";

const EARLIER = 5;

export function RolloutCard({ template }: { template: Template }) {
  const list = useQuery(templateRollouts(template.id));
  if (list.isLoadingError) return <Failure error={list.error} retry={() => void list.refetch()} />;
  const rollouts = list.data ?? [];
  const [latest] = rollouts;
  if (!latest) return null;
  const earlier = rollouts.filter((rollout) => !isOpen(rollout)).slice(0, EARLIER);
  return (
    <Section
      title="Rollout"
      description="Offers a version to a part of the workspaces before it becomes the active one."
    >
      <Stack>
        {isOpen(latest) ? <OpenRollout template={template} rollout={latest} /> : null}
        {earlier.length > 0 ? (
          <ul aria-label="Earlier rollouts" className="text-sm text-muted">
            {earlier.map((rollout) => (
              <li key={rollout.id}>
                <span className="text-text">{rollout.template_version_name}</span>:{" "}
                {STATUS_WORDS[rollout.status].toLowerCase()}{" "}
                {rollout.ended_at ? <Ago at={rollout.ended_at} /> : null}
                {rollout.status === "completed" ? "" : ` at ${rollout.percent}%`}
                {rollout.message ? `. ${rollout.message}` : ""}
              </li>
            ))}
          </ul>
        ) : null}
      </Stack>
    </Section>
  );
}

function OpenRollout({ template, rollout }: { template: Template; rollout: TemplateRollout }) {
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"next" | "rollback" | null>(null);
  const [busy, setBusy] = useState(false);
  const act = async (action: Action) => {
    await patch<TemplateRollout>(`/api/v2/templates/${template.id}/rollouts`, {
      rollout_id: rollout.id,
      action,
      percent: rollout.percent,
      // A rollout that has stopped since the page was loaded does not go on.
      ...(action === "next" ? { status: rollout.status } : {}),
    });
    await Promise.all(
      ["template", "templates"].map((key) => queries.invalidateQueries({ queryKey: [key] })),
    );
  };
  const actNow = (action: Action) => {
    setBusy(true);
    act(action)
      .catch((error: unknown) => toast.failed("Failed to change the rollout", error))
      .finally(() => setBusy(false));
  };
  const next = nextStage(rollout);
  const name = rollout.template_version_name;
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <p className="min-w-0 flex-1 basis-56">
          <span className="font-medium">{name}</span> for {reachOf(rollout)}, since{" "}
          <Ago at={rollout.stage_started_at} />
        </p>
        <StatusText tone={STATUS_TONES[rollout.status]} pulse={rollout.status === "running"}>
          {STATUS_WORDS[rollout.status]}
        </StatusText>
      </div>
      <Stages rollout={rollout} />
      {rollout.status === "stopped" ? (
        <Notice kind="warning" title="The rollout is stopped">
          {rollout.message ? <p>{rollout.message}</p> : null}
          <p>
            No further workspaces are offered {name}. Workspaces that already have it keep it until
            you roll back.
          </p>
        </Notice>
      ) : null}
      {lostGroup(rollout) ? (
        <Notice kind="warning" title="The group of this rollout was deleted">
          <p>
            {name} is offered to {reachOf(rollout)}: its members’ workspaces are no longer included.
            Workspaces that already have it keep it.
          </p>
          <p>
            {next === 100 ? "Complete the rollout" : `Advance to ${next}%`}, or roll back and start
            a rollout with another group.
          </p>
        </Notice>
      ) : null}
      <Progress rollout={rollout} />
      <div className="flex flex-wrap gap-2">
        <Button size="sm" variant="primary" disabled={busy} onClick={() => setAsking("next")}>
          {next === 100 ? "Complete rollout…" : `Advance to ${next}%…`}
        </Button>
        {rollout.status === "running" ? (
          <Button size="sm" disabled={busy} onClick={() => actNow("stop")}>
            Stop rollout
          </Button>
        ) : (
          <Button size="sm" disabled={busy} onClick={() => actNow("resume")}>
            Resume rollout
          </Button>
        )}
        <Button size="sm" variant="danger" disabled={busy} onClick={() => setAsking("rollback")}>
          Roll back…
        </Button>
      </div>
      <Confirm
        open={asking === "next"}
        onClose={() => setAsking(null)}
        danger={false}
        title={next === 100 ? `Make ${name} the active version?` : `Advance to ${next}%?`}
        confirm={next === 100 ? "Complete rollout" : "Advance"}
        onConfirm={() => act("next")}
      >
        {next === 100
          ? "New workspaces use this version; existing ones are marked outdated until they are updated."
          : `${name} will be offered to ${reachOf(rollout, next)}.`}
      </Confirm>
      <Confirm
        open={asking === "rollback"}
        onClose={() => setAsking(null)}
        title={`Roll back ${name}?`}
        confirm="Roll back"
        onConfirm={() => act("rollback")}
      >
        The rollout ends. Updates bring workspaces that have {name} back to the active version
        {rollout.former_version_name ? `, ${rollout.former_version_name}` : ""}.
      </Confirm>
    </>
  );
}

function Stages({ rollout }: { rollout: TemplateRollout }) {
  return (
    <ol aria-label="Stages" className="flex flex-wrap gap-2 text-sm">
      {rollout.stages.map((stage) => (
        <li
          key={stage}
          aria-current={stage === rollout.percent ? "step" : undefined}
          className={
            stage === rollout.percent
              ? "rounded-md bg-accent-soft px-2 py-0.5 font-medium"
              : "rounded-md border border-line px-2 py-0.5 text-muted"
          }
        >
          {stage === 0 ? rollout.group_name || "Deleted group" : `${stage}%`}
        </li>
      ))}
    </ol>
  );
}

/** What is not known is "-", never 0. */
function Progress({ rollout }: { rollout: TemplateRollout }) {
  const counts = rollout.progress;
  const facts: readonly (readonly [string, string])[] = [
    ["Workspaces", shown(counts?.workspaces)],
    ["Offered", shown(counts?.offered)],
    ["Updated", shown(counts?.updated)],
    ["Builds succeeded", shown(counts?.builds_succeeded)],
    ["Builds failed", shown(counts?.builds_failed)],
    ["Builds in progress", shown(counts?.builds_unfinished)],
    [
      `Failure rate (limit ${rollout.failure_percent}%)`,
      typeof counts?.failure_percent === "number" ? `${counts.failure_percent}%` : "-",
    ],
  ];
  return (
    <dl className="grid grid-cols-[repeat(auto-fill,minmax(8rem,1fr))] gap-x-4 gap-y-2">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt className="text-sm text-muted">{label}</dt>
          <dd className="text-lg font-medium tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const shown = (count: number | undefined): string =>
  count === undefined ? "-" : count.toLocaleString();
