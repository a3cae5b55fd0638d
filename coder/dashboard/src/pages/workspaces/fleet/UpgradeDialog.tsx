// The dialog of a bulk upgrade: the selected machines, each with its progress.
import { useEffect, useRef, useState } from "react";

import { counted } from "../../../lib/words";
import { StatusText } from "../../../ui/Badge";
import { Button } from "../../../ui/Button";
import { Dialog } from "../../../ui/Dialog";
import { machineKey, machineNames, type Machine } from "./fleet";
import { upgradeMachine, type UpgradeProgress } from "./upgrade";

const POLL_MS = 2000;
/** Milliseconds that each machine adds to the pause, so that many machines send no more requests. */
const POLL_EACH_MS = 100;

export function UpgradeDialog({
  machines,
  onClose,
  pollMs = POLL_MS,
}: {
  machines: readonly Machine[];
  onClose: () => void;
  /** Milliseconds between two requests about a machine. */
  pollMs?: number;
}) {
  const [progress, setProgress] = useState<Readonly<Record<string, UpgradeProgress>>>({});
  const [started, setStarted] = useState(false);
  const following = useRef<AbortController | null>(null);
  const stop = () => following.current?.abort();
  useEffect(() => () => stop(), []);
  const names = machineNames(machines);
  const start = () => {
    const controller = new AbortController();
    following.current = controller;
    setStarted(true);
    const wait = pollMs + POLL_EACH_MS * machines.length;
    // All are requested at once: a machine that waits until it is idle keeps no other one waiting.
    for (const machine of machines)
      void upgradeMachine(machine, {
        onProgress: (next) => setProgress((old) => ({ ...old, [machineKey(machine)]: next })),
        signal: controller.signal,
        pause: () => new Promise((resolve) => window.setTimeout(resolve, wait)),
      });
  };
  const states = machines.map((machine) => progress[machineKey(machine)]);
  const ended = states.filter((state) => state?.ended);
  const failed = ended.filter((state) => state?.tone === "bad");
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={`Upgrade ${counted(machines.length, "agent")}`}
      description="Each agent downloads the server’s program and changes to it once it is idle. Terminals and commands keep running."
      actions={
        <>
          <Button onClick={onClose}>Close</Button>
          {started ? null : (
            <Button variant="primary" onClick={start}>
              Upgrade
            </Button>
          )}
        </>
      }
    >
      <div className="flex flex-col gap-3">
        <p role="status" className="min-h-6">
          {started ? (
            <>
              {ended.length} of {machines.length} ended
              {failed.length > 0 ? `, ${failed.length} failed` : ""}. Agents that wait need no open
              page.
            </>
          ) : null}
        </p>
        <ul
          aria-label="Machines"
          tabIndex={0}
          className="max-h-96 divide-y divide-line overflow-y-auto"
        >
          {machines.map((machine, index) => {
            const state = states[index];
            return (
              <li key={machineKey(machine)} className="flex flex-wrap gap-x-4 gap-y-0.5 py-1.5">
                <span className="flex-1 basis-40 font-medium [overflow-wrap:anywhere]">
                  {names[index]}
                </span>
                <span className="flex-2 basis-60 [overflow-wrap:anywhere]">
                  {state ? (
                    <StatusText tone={state.tone} quiet>
                      {state.text}
                    </StatusText>
                  ) : (
                    <span className="text-muted">{machine.agent.version || "-"}</span>
                  )}
                </span>
              </li>
            );
          })}
        </ul>
      </div>
    </Dialog>
  );
}
