// How to get the command line onto a machine. Readable without an account, as the script itself is.
import { useQuery } from "@tanstack/react-query";

import { buildInfo } from "../api/queries/session";
import { CodeBox } from "../ui/CodeBox";
import { Narrow, PageHead, Stack } from "../ui/Page";
import { useTitle } from "../ui/title";

export function InstallPage() {
  useTitle("Install the Coder CLI");
  const info = useQuery(buildInfo);
  const url = (info.data?.dashboard_url || window.location.origin).replace(/\/$/, "");
  return (
    <Narrow>
      <PageHead title="Install the Coder CLI" description="On Linux or macOS, run this line. It fetches the program from this deployment, so the versions fit." />
      <Stack>
        <CodeBox command={`curl -fsSL ${url}/install.sh | sh`} label="Command that installs the command line" />
        <p className="text-muted">Then sign in:</p>
        <CodeBox command={`coder login ${url}`} label="Command that signs in" />
      </Stack>
    </Narrow>
  );
}
