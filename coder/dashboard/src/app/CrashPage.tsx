// A page that broke. Most often a new version of the dashboard was installed while this one was open, and its parts
// are gone: loading the page again gets the new one.
import { TriangleAlert } from "lucide-react";
import { useRouteError } from "react-router";

import { Button, ButtonLink } from "../ui/Button";
import { CopyButton } from "../ui/text/CodeBox";
import { Empty } from "../ui/Empty";
import { useTitle } from "../ui/title";

const GONE = /dynamically imported module|importing a module script|preload/i;

export function CrashPage() {
  const error = useRouteError();
  const text = error instanceof Error ? error.message : String(error);
  const updated = GONE.test(text);
  useTitle(updated ? "New version" : "Something went wrong");
  return (
    <Empty
      icon={TriangleAlert}
      level={1}
      title={updated ? "A new version is here" : "This page has broken"}
      actions={
        <>
          <Button look="primary" onClick={() => window.location.reload()}>
            Load the page again
          </Button>
          <ButtonLink to="/workspaces">Back to workspaces</ButtonLink>
        </>
      }
    >
      <p>
        {updated
          ? "The dashboard was updated while this page was open."
          : "It is our mistake, not yours. Nothing on the server was changed by it."}
      </p>
      {updated ? null : (
        <details className="mt-3 text-left">
          <summary>What to tell whoever looks after this deployment</summary>
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
