// How to get the command line onto a machine. Readable without an account, as the script itself is.
import { useQuery } from "@tanstack/react-query";

import { buildInfo } from "../api/queries";
import { CommandBox } from "../components/CommandBox";
import { useTitle } from "../components/title";

export function InstallPage() {
  useTitle("Install the Coder CLI");
  const info = useQuery(buildInfo);
  const url = (info.data?.dashboard_url || window.location.origin).replace(/\/$/, "");
  return (
    <div className="narrow">
      <h1>Install the Coder CLI</h1>
      <p className="faint">On Linux or macOS, run this line. It fetches the program from this deployment, so the versions fit.</p>
      <CommandBox command={`curl -fsSL ${url}/install.sh | sh`} label="Command that installs the command line" />
      <p className="faint">Then sign in:</p>
      <CommandBox command={`coder login ${url}`} label="Command that signs in" />
    </div>
  );
}
