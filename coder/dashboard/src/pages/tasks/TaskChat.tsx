// The conversation with the agent. Live while its workspace runs; afterwards its last snapshot.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ArrowUp } from "lucide-react";
import { useEffect, useRef } from "react";

import { patch, post } from "../../api/client";
import { useTaskRights } from "../../api/permissions";
import { taskLogs, taskPath } from "../../api/queries/tasks";
import type { Task, TaskLogEntry } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { cx } from "../../ui/cx";
import { Failure } from "../../ui/Failure";
import { TextArea } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { keyOf } from "../../ui/keys";
import { Notice } from "../../ui/Notice";
import { toast } from "../../ui/toast";
import { isLive } from "./task-status";

interface TaskChatProps {
  task: Task;
  owner: string;
  name: string;
}

export function TaskChat({ task, owner, name }: TaskChatProps) {
  const live = isLive(task);
  const may = useTaskRights(task.organization_id, task.owner_id);
  const hasLog = live || task.status === "paused" || task.status === "error";
  const logs = useQuery({ ...taskLogs(owner, name, live), enabled: hasLog });
  const entries = logs.data?.logs ?? [];
  const end = useRef<HTMLDivElement>(null);
  const count = entries.length;
  useEffect(() => {
    end.current?.scrollIntoView({ block: "nearest" });
  }, [count]);
  return (
    <Section title="Conversation" padded={false}>
      <div
        role="log"
        aria-label="Conversation"
        tabIndex={0}
        className="flex max-h-[60vh] flex-col gap-3 overflow-y-auto px-5 py-4"
      >
        {entries.length === 0 ? (
          <Entry
            entry={{ id: 0, type: "input", content: task.initial_prompt, time: task.created_at }}
          />
        ) : null}
        {logs.data?.snapshot ? (
          <Notice kind="info" title="Showing the conversation as of the last pause">
            {logs.data.snapshot_at ? <Ago at={logs.data.snapshot_at} /> : null}
          </Notice>
        ) : null}
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
        {logs.isError ? (
          <Failure
            error={logs.error}
            title="The conversation is unavailable"
            retry={() => void logs.refetch()}
          />
        ) : null}
        {!hasLog ? (
          <p role="status" className="text-sm text-muted">
            The workspace is starting. The agent begins automatically.
          </p>
        ) : null}
        <div ref={end} />
      </div>
      <div className="border-t border-line px-5 py-4">
        {may.update === false ? (
          <p className="text-sm text-muted">You can view this conversation but not reply.</p>
        ) : task.status === "paused" ? (
          <Prompt task={task} owner={owner} name={name} />
        ) : (
          <MessageForm live={live} owner={owner} name={name} />
        )}
      </div>
    </Section>
  );
}

function Entry({ entry }: { entry: TaskLogEntry }) {
  const isOwn = entry.type === "input";
  return (
    <div
      className={cx(
        "max-w-[92%] rounded-lg px-3 py-2",
        isOwn ? "self-end bg-accent-soft" : "self-start border border-line bg-inset",
      )}
    >
      <p className="mb-0.5 text-xs text-muted">
        {isOwn ? "You" : "Agent"} · <Ago at={entry.time} />
      </p>
      {/* An agent's answer is the screen of its program: keep its columns. */}
      <p
        className={cx(
          "whitespace-pre-wrap [overflow-wrap:anywhere]",
          !isOwn && "font-mono text-xs",
        )}
      >
        {entry.content}
      </p>
    </div>
  );
}

function MessageForm({ live, owner, name }: { live: boolean; owner: string; name: string }) {
  const queries = useQueryClient();
  const typed = useRef("");
  const form = useForm(
    { input: "" },
    async ({ input }) => {
      await post(`${taskPath(owner, name)}/send`, { input });
      if (typed.current === input) form.reset({ input: "" }); // keep what the user has typed meanwhile
      await queries.invalidateQueries({ queryKey: ["task", owner, name] });
    },
    ({ input }) => (input.trim() === "" ? { input: "Enter a message." } : {}),
  );
  useEffect(() => {
    typed.current = form.values.input;
  });
  return (
    <form onSubmit={form.submit} className="flex flex-col gap-2">
      {form.error ? <Failure error={form.error} title="Failed to send the message" /> : null}
      <TextArea
        label="Message to the agent"
        hideLabel
        rows={2}
        disabled={!live}
        placeholder={
          live ? "Answer, correct, ask for more…" : "The agent is not ready for messages yet."
        }
        value={form.values.input}
        problem={form.problem("input")}
        onChange={(value) => form.set("input", value)}
        onKeyDown={(event) => {
          if (keyOf(event) === "Enter" && !event.shiftKey) {
            event.preventDefault();
            form.submit();
          }
        }}
      />
      <div className="flex items-center justify-between gap-2">
        <span className="text-xs text-muted">Enter to send, Shift+Enter for a new line.</span>
        <Button
          type="submit"
          size="sm"
          variant="primary"
          icon={<ArrowUp />}
          busy={form.busy}
          disabled={!live}
        >
          Send
        </Button>
      </div>
    </form>
  );
}

function Prompt({ task, owner, name }: TaskChatProps) {
  const queries = useQueryClient();
  const form = useForm(
    { input: task.initial_prompt },
    async ({ input }) => {
      await patch(`${taskPath(owner, name)}/input`, { input });
      await queries.invalidateQueries({ queryKey: ["task"] });
      toast.done("Prompt updated successfully.", "It applies from the next start.");
    },
    ({ input }) => (input.trim() === "" ? { input: "Enter a prompt." } : {}),
  );
  return (
    <form onSubmit={form.submit} className="flex flex-col gap-2">
      {form.error ? <Failure error={form.error} /> : null}
      <TextArea
        label="Prompt for the next start"
        rows={3}
        value={form.values.input}
        problem={form.problem("input")}
        onChange={(value) => form.set("input", value)}
      />
      <div className="flex justify-end">
        <Button type="submit" size="sm" busy={form.busy} disabled={!form.dirty}>
          Update prompt
        </Button>
      </div>
    </form>
  );
}
