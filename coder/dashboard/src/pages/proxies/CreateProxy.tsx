// The dialog for a new workspace proxy; its token is shown once.
import { useState } from "react";

import { post } from "../../api/client";
import type { CreateWorkspaceProxyRequest, UpdateWorkspaceProxyResponse } from "../../api/types";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/forms/Field";
import { FormDialog } from "../../ui/forms/FormDialog";
import { useForm } from "../../ui/forms/form";
import { IconField } from "../../ui/forms/IconField";
import { Notice } from "../../ui/Notice";
import { Stack } from "../../ui/Page";
import { CodeBox } from "../../ui/text/CodeBox";
import { toast } from "../../ui/toast";

export function CreateProxy({
  onClose,
  onMade,
}: {
  onClose: () => void;
  onMade: () => Promise<void>;
}) {
  const [token, setToken] = useState<string | null>(null);
  const form = useForm(
    { name: "", display_name: "", icon: "" },
    async (values: CreateWorkspaceProxyRequest) => {
      setToken(
        (await post<UpdateWorkspaceProxyResponse>("/api/v2/workspaceproxies", values)).proxy_token,
      );
      toast.done(`Proxy ${values.name} created successfully.`);
      await onMade();
    },
  );
  const { values, set, problem } = form;
  if (token !== null) {
    const primary = window.location.origin;
    const own = `https://${values.name}.example.com`;
    return (
      <Dialog
        open
        held
        wide
        onClose={onClose}
        title={`Proxy ${values.name} created`}
        actions={
          <Button variant="primary" onClick={onClose}>
            Done
          </Button>
        }
      >
        <Stack>
          <Notice kind="warning" title="The token is shown once">
            Anyone with this token can impersonate the proxy and intercept connections to
            workspaces.
          </Notice>
          <CodeBox label="Proxy token" command={token} secret />
          <p className="text-sm text-muted">Start the proxy on its machine:</p>
          <CodeBox
            label="Command that starts the proxy"
            command={`CODER_PROXY_SESSION_TOKEN=… coder wsproxy server --primary-access-url ${primary} --access-url ${own}`}
          />
        </Stack>
      </Dialog>
    );
  }
  return (
    <FormDialog title="Create proxy" form={form} submit="Create proxy" onClose={onClose}>
      <TextField
        label="Name"
        required
        placeholder="sydney"
        value={values.name}
        problem={problem("name")}
        onChange={(value) => set("name", value)}
      />
      <TextField
        label="Display name"
        placeholder="Sydney"
        value={values.display_name}
        problem={problem("display_name")}
        onChange={(value) => set("display_name", value)}
      />
      <IconField
        value={values.icon}
        problem={problem("icon")}
        onChange={(value) => set("icon", value)}
      />
    </FormDialog>
  );
}
