// The speed test of the way through the server, which web terminals and applications take.
import { useMutation } from "@tanstack/react-query";
import { Gauge } from "lucide-react";
import { useState } from "react";

import type { WorkspaceAgent } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Facts, Section } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { measureSpeed, speedText, type Speed } from "./speed";

const VIA: Readonly<Record<Speed["via"], string>> = {
  direct: "Direct: the server exchanges packets with the machine without its relay.",
  relay: "Relayed: the server reaches the machine through its own relay.",
  "": "Unknown: the machine did not answer a ping.",
};

export function SpeedTest({
  agent,
  onMeasured,
}: {
  agent: WorkspaceAgent;
  onMeasured: (speed: Speed) => void;
}) {
  const [part, setPart] = useState("");
  const test = useMutation({
    mutationFn: () => measureSpeed(agent.id, setPart),
    onSuccess: onMeasured,
  });
  const speed = test.data;
  return (
    <Section
      title="Speed test"
      description="Sends at most 45 MB in each direction, within about ten seconds."
      actions={
        <Button icon={<Gauge />} busy={test.isPending} onClick={() => test.mutate()}>
          {speed ? "Test again" : "Run speed test"}
        </Button>
      }
    >
      <div role="status" className="min-h-6">
        {test.isPending ? (
          <p className="text-muted">{part}…</p>
        ) : speed ? (
          <Facts
            items={[
              ["Server to this browser", speedText(speed.browser.down)],
              ["This browser to server", speedText(speed.browser.up)],
              ["Agent to server", speedText(speed.agent.down)],
              ["Server to agent", speedText(speed.agent.up)],
              ["Server’s path to the agent", VIA[speed.via]],
            ]}
          />
        ) : test.error ? null : (
          <p className="text-muted">Not measured yet.</p>
        )}
      </div>
      {test.error ? <Failure error={test.error} title={`The speed test failed: ${part}`} /> : null}
    </Section>
  );
}
