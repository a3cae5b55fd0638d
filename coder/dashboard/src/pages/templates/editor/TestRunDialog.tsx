// The dialog of a version's test run: values that the version requires, the steps, and the result.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { versionParameters } from "../../../api/queries/templates";
import type { Template, TemplateVersion, Workspace } from "../../../api/types";
import { StatusText, type Tone } from "../../../ui/Badge";
import { Button } from "../../../ui/Button";
import { Dialog } from "../../../ui/Dialog";
import { Failure } from "../../../ui/Failure";
import { TextField } from "../../../ui/forms/Field";
import { SkeletonRows } from "../../../ui/Loading";
import { TextLink } from "../../../ui/Page";
import { runTest, STEPS, type Progress, type Step } from "./test-run";

const NAMES: Readonly<Record<Step, string>> = {
  build: "Build one workspace",
  probe: "Probe its agents and applications",
  delete: "Delete it",
};
const STATES: Readonly<Record<Progress["state"], readonly [tone: Tone, word: string]>> = {
  running: ["busy", "Running"],
  done: ["good", "Done"],
  failed: ["bad", "Failed"],
  skipped: ["idle", "Skipped"],
};
const POLL_MS = 1000;
const pause = () => new Promise<void>((resolve) => window.setTimeout(resolve, POLL_MS));
const newName = () => `test-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36)}`;

export function TestRunDialog({
  template,
  version,
  onClose,
}: {
  template: Template;
  version: TemplateVersion;
  onClose: () => void;
}) {
  const parameters = useQuery(versionParameters(version.id));
  const asked = (parameters.data ?? []).filter(
    ({ required, default_value }) => required && default_value === "",
  );
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [progress, setProgress] = useState<Partial<Record<Step, Progress>>>({});
  const [workspace, setWorkspace] = useState<Workspace | null>(null);
  const [result, setResult] = useState<"running" | "passed" | "failed" | null>(null);
  const current = useRef<AbortController | null>(null);
  const stop = () => current.current?.abort(); // the run continues with the deletion
  useEffect(() => () => stop(), []);
  const start = async () => {
    const controller = new AbortController();
    current.current = controller;
    setProgress({});
    setWorkspace(null);
    setResult("running");
    const ok = await runTest({
      version: version.id,
      name: newName(),
      values: asked.map(({ name }) => ({ name, value: values[name] ?? "" })),
      onProgress: (next) => setProgress((old) => ({ ...old, [next.step]: next })),
      onWorkspace: setWorkspace,
      signal: controller.signal,
      pause,
    });
    setResult(ok ? "passed" : "failed");
  };
  const running = result === "running";
  const missing = asked.some(({ name }) => (values[name] ?? "") === "");
  return (
    <Dialog
      open
      held={running}
      onClose={onClose}
      title={`Test ${version.name}`}
      description={
        `Builds one workspace of ${template.display_name || template.name} for you, ` +
        "waits until its agents are ready, and deletes it."
      }
      actions={
        running ? (
          <Button onClick={stop}>Stop and delete</Button>
        ) : (
          <>
            <Button onClick={onClose}>Close</Button>
            <Button
              variant="primary"
              disabled={missing || !parameters.isSuccess}
              onClick={() => void start()}
            >
              {result === null ? "Start the test" : "Test again"}
            </Button>
          </>
        )
      }
    >
      <div className="flex flex-col gap-4">
        {parameters.isPending ? <SkeletonRows rows={1} /> : null}
        {parameters.isLoadingError ? (
          <Failure
            error={parameters.error}
            title="Failed to load the parameters"
            retry={() => void parameters.refetch()}
          />
        ) : null}
        {asked.map(({ name, display_name }) => (
          <TextField
            key={name}
            label={display_name || name}
            name={name}
            required
            value={values[name] ?? ""}
            disabled={running}
            onChange={(value) => setValues((old) => ({ ...old, [name]: value }))}
          />
        ))}
        <ol aria-label="Steps" className="flex flex-col gap-2.5">
          {STEPS.map((step) => (
            <StepLine key={step} step={step} progress={progress[step]} />
          ))}
        </ol>
        <p role="status" className="min-h-6">
          {result === "passed" ? <StatusText tone="good">The test passed.</StatusText> : null}
          {result === "failed" ? <StatusText tone="bad">The test failed.</StatusText> : null}
        </p>
        {workspace && progress.delete?.state !== "done" ? (
          <p className="text-sm text-muted">
            {progress.delete?.state === "failed" ? "It still exists: " : "Its workspace is "}
            <TextLink to={`/@${workspace.owner_name}/${workspace.name}`}>{workspace.name}</TextLink>
            {progress.delete?.state === "failed"
              ? ". Delete it on its page."
              : ". If this page is closed, it stops within an hour, and you delete it yourself."}
          </p>
        ) : null}
      </div>
    </Dialog>
  );
}

function StepLine({ step, progress }: { step: Step; progress: Progress | undefined }) {
  const [tone, word] = progress ? STATES[progress.state] : (["idle", "Not started"] as const);
  return (
    <li>
      <span className="font-medium">{NAMES[step]}</span>{" "}
      <StatusText tone={tone} pulse={progress?.state === "running"}>
        {word}
      </StatusText>
      {progress?.text ? (
        <p className="text-sm text-muted [overflow-wrap:anywhere]">{progress.text}</p>
      ) : null}
    </li>
  );
}
