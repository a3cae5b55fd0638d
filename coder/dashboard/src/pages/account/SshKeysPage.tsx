// The SSH key that workspaces use at Git servers in the user's name.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { useState } from "react";

import { put } from "../../api/client";
import { setServerData } from "../../api/optimistic";
import { gitSshKey } from "../../api/queries/account";
import type { GitSSHKey } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { CodeBox } from "../../ui/text/CodeBox";
import { Confirm } from "../../ui/Confirm";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";

const PLACES: readonly (readonly [string, string])[] = [
  ["GitHub", "https://github.com/settings/ssh/new"],
  ["GitLab", "https://gitlab.com/-/user_settings/ssh_keys"],
  ["Bitbucket", "https://bitbucket.org/account/settings/ssh-keys/"],
];

export function SshKeysPage() {
  useTitle("Settings");
  const queries = useQueryClient();
  const key = useQuery(gitSshKey);
  const [confirming, setConfirming] = useState(false);
  const regenerate = async () => {
    setServerData(queries, gitSshKey.queryKey, await put<GitSSHKey>("/api/v2/users/me/gitsshkey"));
    toast.done("SSH key regenerated successfully.", "Add the new key to your Git servers.");
  };
  return (
    <>
      <PageHead
        title="SSH keys"
        description="All of your workspaces use this key with Git automatically."
      />
      {key.isPending ? <SkeletonRows rows={2} /> : null}
      {key.isError ? <Failure error={key.error} retry={() => void key.refetch()} /> : null}
      {key.data ? (
        <Section
          title="Your public key"
          description={
            <>
              Created <Ago at={key.data.updated_at} />. The private key never leaves the deployment.
            </>
          }
          actions={
            <Button icon={<RefreshCw />} onClick={() => setConfirming(true)}>
              Regenerate
            </Button>
          }
        >
          <Stack>
            <CodeBox
              label="Your public key"
              command={key.data.public_key.trim()}
              testId="public-key"
            />
            <p className="text-base text-muted">
              Add the key at your Git server:{" "}
              {PLACES.map(([name, address], index) => (
                <span key={name}>
                  {index > 0 ? ", " : ""}
                  <a
                    className="font-medium text-accent-text hover:underline"
                    href={address}
                    target="_blank"
                    rel="noreferrer"
                  >
                    {name}
                  </a>
                </span>
              ))}
              . Then test it in a workspace:
            </p>
            <CodeBox label="Command that tests the key" command="ssh -T git@github.com" />
          </Stack>
        </Section>
      ) : null}
      <Confirm
        open={confirming}
        onClose={() => setConfirming(false)}
        title="Regenerate your SSH key?"
        confirm="Regenerate"
        onConfirm={regenerate}
      >
        <p>
          Git servers reject your workspaces until you add the new key there. The old key cannot be
          restored. Running workspaces use the new key at once.
        </p>
      </Confirm>
    </>
  );
}
