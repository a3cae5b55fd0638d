// Sharing or opening any port by number.
import { useState, type FormEvent } from "react";

import { Button, buttonClass } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { SelectField, TextField } from "../../../ui/forms/Field";
import { useForm } from "../../../ui/forms/form";
import { EXPIRIES, type Level, type Send, type End } from "./port-sharing";

const FIRST_PORT = 9; // the server shares no lower ports
const LAST_PORT = 65_535;

/** Any port: it need not be listening yet. */
export function SharePort({
  levels,
  onShare,
}: {
  levels: readonly (readonly [Level, string])[];
  onShare: Send;
}) {
  const form = useForm(
    {
      port: "",
      protocol: "http",
      share_level: levels[0]?.[0] ?? "",
      expires_at: EXPIRIES[0][0] as End,
    },
    async (values) => {
      await onShare(Number(values.port), {
        level: values.share_level as Level,
        protocol: values.protocol === "https" ? "https" : "http",
        end: values.expires_at,
      });
      form.reset({ ...values, port: "" });
    },
  );
  const { values, set, problem } = form;
  return (
    <form
      aria-label="Share a port"
      className="flex flex-col gap-2 border-t border-line pt-3"
      onSubmit={form.submit}
    >
      {form.error ? <Failure error={form.error} /> : null}
      <div className="grid grid-cols-2 gap-2">
        <TextField
          label="Port to share"
          type="number"
          min={FIRST_PORT}
          max={LAST_PORT}
          required
          value={values.port}
          problem={problem("port")}
          onChange={(port) => set("port", port)}
        />
        <SelectField
          label="Protocol"
          value={values.protocol}
          onChange={(protocol) => set("protocol", protocol)}
          options={[
            ["http", "HTTP"],
            ["https", "HTTPS"],
          ]}
          problem={problem("protocol")}
        />
        <SelectField
          label="Sharing level"
          value={values.share_level}
          onChange={(level) => set("share_level", level as Level)}
          options={levels}
          problem={problem("share_level")}
        />
        <SelectField
          label="Expires"
          value={values.expires_at}
          onChange={(end) => set("expires_at", end as End)}
          options={EXPIRIES}
          problem={problem("expires_at")}
        />
      </div>
      <div>
        <Button type="submit" busy={form.busy}>
          Share port
        </Button>
      </div>
    </form>
  );
}

export function OpenPort({ onOpen }: { onOpen: (port: number) => void }) {
  const [port, setPort] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onOpen(Number(port));
  };
  return (
    <form className="flex items-end gap-2" onSubmit={submit}>
      <div className="flex-1">
        <TextField
          hideLabel
          label="Port number"
          type="number"
          min={1}
          max={65535}
          required
          placeholder="Connect to port…"
          value={port}
          onChange={setPort}
        />
      </div>
      <button type="submit" className={buttonClass("secondary", "md")}>
        Open
      </button>
    </form>
  );
}
