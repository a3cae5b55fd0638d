// CLI installation for every platform. Public, like the install scripts.
import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useSearchParams } from "react-router";

import { useMissingProgram } from "../../api/queries/programs";
import { buildInfo } from "../../api/queries/session";
import { buttonClass } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Notice } from "../../ui/Notice";
import { CodeBox } from "../../ui/text/CodeBox";
import { WithCode } from "../../ui/text/WithCode";
import { Narrow, PageHead, Stack } from "../../ui/Page";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useTitle } from "../../ui/title";
import { fileOf, keyOf, PLATFORMS, SYSTEMS, systemOf, type System } from "../../lib/platforms";

export function InstallPage() {
  useTitle("Install the Coder CLI");
  const info = useQuery(buildInfo);
  const [params, setParams] = useSearchParams();
  const url = (info.data?.dashboard_url || window.location.origin).replace(/\/$/, "");
  const requestedSystem = params.get("os");
  const system =
    SYSTEMS.find((item) => item.value === requestedSystem)?.value ?? systemOf(navigator.userAgent);
  return (
    <Narrow>
      <PageHead
        title="Install the Coder CLI"
        description={
          "Use the CLI to connect to workspaces by SSH, forward ports and automate everything else. " +
          "It comes from this deployment, so its version matches the server."
        }
      />
      <Stack>
        <Tabs
          label="Operating system"
          value={system}
          onChange={(value) => setParams({ os: value }, { replace: true })}
          items={SYSTEMS}
        >
          {SYSTEMS.map(({ value, text }) => (
            <TabPanel key={value} value={value} className="flex flex-col gap-4 pt-4">
              <Install system={value} name={text} url={url} />
              <Section
                title="2. Sign in"
                description="This opens the deployment in your browser and asks you to confirm."
              >
                <CodeBox command={`coder login ${url}`} label="Sign-in command" />
              </Section>
              <Section title="3. Use it">
                <Stack>
                  <p className="text-sm text-muted">Open a shell in a workspace:</p>
                  <CodeBox command="coder ssh my-workspace" label="Command that opens a shell" />
                  <p className="text-sm text-muted">
                    To use plain <code>ssh</code>, <code>scp</code> and every editor with Remote
                    SSH:
                  </p>
                  <CodeBox command="coder config-ssh" label="Command that configures SSH" />
                </Stack>
              </Section>
            </TabPanel>
          ))}
        </Tabs>
      </Stack>
    </Narrow>
  );
}

function Install({ system, name, url }: { system: System; name: string; url: string }) {
  const missing = useMissingProgram();
  const platforms = PLATFORMS.filter((item) => item.system === system);
  const absent = platforms.filter((item) => missing(keyOf(item)));
  const noneAvailable = absent.length === platforms.length;
  // Shown above the command only if the command leads nowhere: most visitors use a machine for which
  // the server has a program.
  const notice =
    absent.length === 0 ? null : (
      <Notice
        kind="warning"
        title={
          noneAvailable
            ? `This server has no CLI for ${name}.`
            : `This server has no CLI for ${name} on ${absent.map((item) => item.text).join(" and ")}.`
        }
      >
        <p>
          With Python 3.11 or newer, the wheel installs the same command. Ask an administrator for
          it, then run <code>pipx install FILE.whl</code>.
        </p>
        <p>For administrators:</p>
        <ul className="list-disc pl-5">
          {absent.map((item) => (
            <li key={keyOf(item)}>
              <WithCode text={missing(keyOf(item))?.remedy ?? ""} />
            </li>
          ))}
        </ul>
      </Notice>
    );
  return (
    <Section
      title="1. Install"
      description={system === "windows" ? "In PowerShell:" : "In a terminal:"}
    >
      <Stack>
        {noneAvailable ? notice : null}
        {noneAvailable ? (
          <p className="text-sm text-muted">Once the server has it, this command installs it:</p>
        ) : null}
        <CodeBox
          command={
            system === "windows"
              ? `iwr -useb ${url}/install.ps1 | iex`
              : `curl -fsSL ${url}/install.sh | sh`
          }
          label={`Command that installs the CLI on ${name}`}
        />
        {noneAvailable ? null : (
          <>
            <p className="text-sm text-muted">
              Or download the binary and move it to a folder in your PATH:
            </p>
            <div className="flex flex-wrap gap-2">
              {platforms
                .filter((item) => !absent.includes(item))
                .map((item) => (
                  <a
                    key={item.architecture}
                    className={buttonClass("secondary", "sm")}
                    href={`/bin/${fileOf(item)}`}
                    download
                  >
                    <Download aria-hidden="true" />
                    {item.text}
                  </a>
                ))}
            </div>
            {system === "darwin" ? (
              <p className="text-sm text-muted">
                macOS quarantines downloaded programs. Allow it with{" "}
                <code>xattr -d com.apple.quarantine ./coder</code>. The command above avoids this.
              </p>
            ) : null}
          </>
        )}
        {noneAvailable ? null : notice}
      </Stack>
    </Section>
  );
}
