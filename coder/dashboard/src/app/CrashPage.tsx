// Shown when a page crashes. The usual cause is a dashboard upgrade while the page was open, after
// which its chunks are gone: reloading loads the new version.
import { TriangleAlert } from "lucide-react";
import { useRouteError } from "react-router";

import { Button, ButtonLink } from "../ui/Button";
import { CopyButton } from "../ui/text/CodeBox";
import { Empty } from "../ui/Empty";
import { useTitle } from "../ui/title";

const MISSING_CHUNK = /dynamically imported module|importing a module script|preload/i;

export function CrashPage() {
  const error = useRouteError();
  const text = error instanceof Error ? error.message : String(error);
  const updated = MISSING_CHUNK.test(text);
  useTitle(updated ? "New version" : "Something went wrong");
  return (
    <Empty
      icon={TriangleAlert}
      level={1}
      title={updated ? "A new version is available" : "This page has crashed"}
      actions={
        <>
          <Button variant="primary" onClick={() => window.location.reload()}>
            Reload page
          </Button>
          <ButtonLink to="/workspaces">Back to workspaces</ButtonLink>
        </>
      }
    >
      <p>
        {updated
          ? "The dashboard was updated while this page was open. Reload the page to continue."
          : "This is a defect of the dashboard. It changed nothing on the server. Reload the page to continue."}
      </p>
      {updated ? null : (
        <details className="mt-3 text-left">
          <summary>Details for the administrator</summary>
          <pre className="mt-2 max-h-48 overflow-auto rounded-lg border border-line bg-inset p-3 text-sm whitespace-pre-wrap">
            {text}
            {"\n"}
            {error instanceof Error ? error.stack : ""}
          </pre>
          <CopyButton
            text={`${window.location.href}\n${text}\n${error instanceof Error ? error.stack : ""}`}
          />
        </details>
      )}
    </Empty>
  );
}
