// The home page of a user without workspaces: three ways to the first one.
import { LayoutTemplate, Server, SquareTerminal } from "lucide-react";
import type { ReactNode } from "react";

import { NO_WORKSPACES_ANYWHERE, usePermissions } from "../../../api/permissions";
import { ButtonLink } from "../../../ui/Button";
import { Card } from "../../../ui/Card";
import { Notice } from "../../../ui/Notice";
import { CodeBox } from "../../../ui/text/CodeBox";
import { NewWorkspace } from "../NewWorkspace";

export function FirstWorkspace() {
  const may = usePermissions();
  if (may.known && !may.createOwnWorkspace && !may.createWorkspaceForAny)
    return <Notice kind="info" title={NO_WORKSPACES_ANYWHERE} />;
  return (
    <section aria-labelledby="first">
      <h2 id="first" className="mb-3 text-lg font-semibold">
        Three ways to your first workspace
      </h2>
      <ol className="grid grid-cols-3 gap-4 max-lg:grid-cols-1">
        <Way icon={<LayoutTemplate />} title="From a template" action={<NewWorkspace />}>
          Choose a template and a name; the workspace is built for you.
        </Way>
        <Way
          icon={<Server />}
          title="From a machine you have"
          action={<ButtonLink to="/workspaces/attach">Attach a machine</ButtonLink>}
        >
          Run one command on a server, a virtual machine or a laptop, and use it as a workspace.
        </Way>
        <Way
          icon={<SquareTerminal />}
          title="From your terminal"
          action={<ButtonLink to="/install">Install the CLI</ButtonLink>}
        >
          <CodeBox
            label="Commands that sign in and create a workspace"
            command={`coder login ${window.location.origin} && coder create`}
          />
        </Way>
      </ol>
    </section>
  );
}

function Way({
  icon,
  title,
  action,
  children,
}: {
  icon: ReactNode;
  title: string;
  action: ReactNode;
  children: ReactNode;
}) {
  return (
    <li>
      <Card className="flex h-full min-h-48 flex-col items-start gap-3 p-5">
        <span className="text-accent-text [&_svg]:size-6" aria-hidden="true">
          {icon}
        </span>
        <h3 className="font-semibold">{title}</h3>
        <div className="w-full flex-1 text-muted">{children}</div>
        {action}
      </Card>
    </li>
  );
}
