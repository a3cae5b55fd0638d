// A new device: its name and access, then its configuration as a QR code and as a file. Shown once.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";

import { tokenConfig } from "../../../api/queries/account";
import { post } from "../../../api/client";
import { workspaces } from "../../../api/queries/workspaces";
import type {
  CreateWireguardClientRequest,
  CreateWireguardClientResponse,
} from "../../../api/types";
import { Button, buttonClass } from "../../../ui/Button";
import { CodeBox } from "../../../ui/text/CodeBox";
import { Dialog } from "../../../ui/Dialog";
import { Failure } from "../../../ui/Failure";
import { Checkbox } from "../../../ui/forms/Toggle";
import { RadioCards } from "../../../ui/forms/RadioCards";
import { SelectField, TextField } from "../../../ui/forms/Field";
import { FormDialog } from "../../../ui/forms/FormDialog";
import { useForm } from "../../../ui/forms/form";
import { Notice } from "../../../ui/Notice";
import { Stack } from "../../../ui/Page";
import { toast } from "../../../ui/toast";
import { countedAtStart } from "../../../lib/words";
import { QrCode } from "./QrCode";
import { configText, forQr, makeKeys } from "./wireguard";

const DAY_S = 86_400;
const LIFETIMES = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "1 year"],
  ["0", "Never"],
] as const;
const UNLIMITED_DAYS = 36_500;
const MOST = 100;

/** Lifetimes up to the longest that the server accepts for this user's tokens and devices. */
function offeredLifetimes(longestDays: number) {
  return LIFETIMES.filter(([days]) =>
    days === "0" ? longestDays >= UNLIMITED_DAYS : Number(days) <= longestDays,
  );
}

export default function AddDevice({
  user,
  onClose,
  onAdded,
}: {
  user: string;
  onClose: () => void;
  onAdded: () => Promise<void>;
}) {
  const [created, setCreated] = useState<{ name: string; config: string } | null>(null);
  const longest = useQuery(tokenConfig).data?.max_token_lifetime;
  const offered = offeredLifetimes(longest === undefined ? UNLIMITED_DAYS : longest / 1e9 / DAY_S);
  const daysOf = (chosen: string) =>
    offered.some(([days]) => days === chosen) ? chosen : (offered.at(-1)?.[0] ?? chosen);
  const form = useForm(
    { name: "", days: "30", limited: false, workspace_ids: [] as string[] },
    async (values) => {
      const keys = makeKeys();
      const request: CreateWireguardClientRequest = {
        name: values.name,
        public_key: keys.shared,
        ...(daysOf(values.days) === "0"
          ? {}
          : { lifetime_seconds: Number(daysOf(values.days)) * DAY_S }),
        ...(values.limited ? { workspace_ids: values.workspace_ids } : {}),
      };
      const answer = await post<CreateWireguardClientResponse>(
        `/api/v2/users/${user}/wireguard-clients`,
        request,
      );
      toast.done(`Device "${values.name}" added successfully.`);
      setCreated({ name: values.name, config: configText(answer, keys.secret) });
      await onAdded();
    },
    (values) =>
      values.limited && values.workspace_ids.length === 0
        ? { workspace_ids: "Choose at least one workspace." }
        : {},
  );
  if (created) return <Made {...created} onClose={onClose} />;
  const { values, set, problem } = form;
  return (
    <FormDialog
      title="Add device"
      description="The private key is generated in this browser; the server never sees it."
      form={form}
      submit="Add device"
      onClose={onClose}
    >
      <TextField
        label="Name"
        required
        placeholder="phone"
        value={values.name}
        problem={problem("name")}
        onChange={(value) => set("name", value)}
      />
      <SelectField
        label="Expires after"
        value={daysOf(values.days)}
        onChange={(value) => set("days", value)}
        options={offered}
      />
      <RadioCards
        label="Access"
        value={values.limited ? "some" : "all"}
        onChange={(value) => set("limited", value === "some")}
        options={[
          {
            value: "all",
            text: "All workspaces you have access to",
            hint: "Including future workspaces.",
          },
          { value: "some", text: "Only selected workspaces" },
        ]}
      />
      {values.limited ? (
        <Choose
          chosen={values.workspace_ids}
          onChange={(ids) => set("workspace_ids", ids)}
          problem={problem("workspace_ids")}
        />
      ) : null}
    </FormDialog>
  );
}

function Choose({
  chosen,
  onChange,
  problem,
}: {
  chosen: readonly string[];
  onChange: (ids: string[]) => void;
  problem: string | undefined;
}) {
  const [text, setText] = useState("");
  const named = text.trim().replaceAll('"', "");
  const ownWorkspaces = useQuery({
    ...workspaces(named === "" ? "owner:me" : `owner:me name:"${named}"`, 1, MOST),
    refetchInterval: false,
    placeholderData: keepPreviousData,
  });
  if (ownWorkspaces.isLoadingError)
    return <Failure error={ownWorkspaces.error} retry={() => void ownWorkspaces.refetch()} />;
  const choices = ownWorkspaces.data?.workspaces ?? [];
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="sr-only">Accessible workspaces</legend>
      {named !== "" || (ownWorkspaces.data?.count ?? 0) > MOST ? (
        <TextField
          hideLabel
          label="Search your workspaces"
          type="search"
          placeholder={`The first ${MOST}; type to search for others`}
          value={text}
          onChange={setText}
        />
      ) : null}
      {choices.map((workspace) => (
        <Checkbox
          key={workspace.id}
          label={workspace.name}
          checked={chosen.includes(workspace.id)}
          onChange={(on) =>
            onChange(on ? [...chosen, workspace.id] : chosen.filter((id) => id !== workspace.id))
          }
        />
      ))}
      {ownWorkspaces.data && choices.length === 0 ? (
        <p className="text-sm text-muted">
          {named === "" ? "You have no workspaces yet." : "No results"}
        </p>
      ) : null}
      {chosen.length > 0 ? (
        <p className="text-sm text-muted">{countedAtStart(chosen.length, "workspace")} selected.</p>
      ) : null}
      {problem ? (
        <p role="alert" className="text-sm text-bad">
          {problem}
        </p>
      ) : null}
    </fieldset>
  );
}

function Made({ name, config, onClose }: { name: string; config: string; onClose: () => void }) {
  const file = `data:text/plain;charset=utf-8,${encodeURIComponent(config)}`;
  return (
    <Dialog
      open
      held
      onClose={onClose}
      wide
      title={`Device ${name} added`}
      actions={
        <Button variant="primary" onClick={onClose}>
          Done
        </Button>
      }
    >
      <Stack>
        <Notice kind="warning" title="The configuration is shown once">
          It contains the device’s private key. After you close this dialog, you can only create a
          new configuration.
        </Notice>
        <div className="grid grid-cols-[minmax(0,18rem)_minmax(0,1fr)] gap-5 max-sm:grid-cols-1">
          <QrCode text={forQr(config)} label={`QR code with the configuration of ${name}`} />
          <ol className="flex list-decimal flex-col gap-2 pl-5 text-base">
            <li>
              In the WireGuard app on the device, add a tunnel <strong>from QR code</strong>.
            </li>
            <li>Scan this code, name the tunnel and turn it on.</li>
            <li>
              Return to this page: the device shows <strong>Connected</strong> and the addresses of
              your workspaces.
            </li>
          </ol>
        </div>
        <p className="text-sm text-muted">
          On a computer, save it as a file: <code>sudo wg-quick up ./coder.conf</code>
        </p>
        <CodeBox label="Configuration" command={config} secret testId="device-config" />
        <div>
          <a className={buttonClass("secondary")} href={file} download="coder.conf">
            <Download />
            Download coder.conf
          </a>
        </div>
      </Stack>
    </Dialog>
  );
}
