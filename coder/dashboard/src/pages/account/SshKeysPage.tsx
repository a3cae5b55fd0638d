// The key with which workspaces reach Git servers in the person's name.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { useState } from "react";

import { put } from "../../api/client";
import { setKnown } from "../../api/overtaken";
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
  const [asking, setAsking] = useState(false);
  const regenerate = async () => {
    setKnown(queries, gitSshKey.queryKey, await put<GitSSHKey>("/api/v2/users/me/gitsshkey"));
    toast.done("You have a new key.", "Add it where the old one was.");
  };
  return (
    <>
      <PageHead
        title="SSH keys"
        description="Every workspace of yours uses this key with Git, by itself."
      />
      {key.isPending ? <SkeletonRows rows={2} /> : null}
      {key.isError ? <Failure error={key.error} retry={() => void key.refetch()} /> : null}
      {key.data ? (
        <Section
          title="Your public key"
          description={
            <>
              Made <Ago at={key.data.updated_at} />. The private half never leaves the deployment.
            </>
          }
          actions={
            <Button icon={<RefreshCw />} onClick={() => setAsking(true)}>
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
              Copy it and add it at your Git server:{" "}
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
              . Then, in a workspace:
            </p>
            <CodeBox label="Command that tries it" command="ssh -T git@github.com" />
          </Stack>
        </Section>
      ) : null}
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title="Regenerate your SSH key?"
        confirm="Regenerate"
        onConfirm={regenerate}
      >
        <p>
          Git servers refuse the old key’s workspaces until you have added the new one there. The
          old key cannot be brought back. Running workspaces use the new one at once.
        </p>
      </Confirm>
    </>
  );
}
