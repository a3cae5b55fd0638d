// A command or a value to copy: a secret part is hidden until revealed, and one button copies all
// of it.
import { Check, Copy, Eye, EyeOff } from "lucide-react";
import { useEffect, useState } from "react";

import { Button, IconButton } from "../Button";
import { copyOrReport } from "./clipboard";

const TOKEN = /(CODER_AGENT_TOKEN=")([^"]+)(")/;
const SHOWN_MS = 2000;

interface CodeBoxProps {
  command: string;
  label: string;
  /** The whole text is a secret, not only a token inside it. */
  secret?: boolean;
  testId?: string;
}

export function CodeBox({ command, label, secret = false, testId = "command" }: CodeBoxProps) {
  const [shown, setShown] = useState(false);
  const hides = secret || TOKEN.test(command);
  const noun = secret ? "value" : "token";
  const masked = secret ? "•".repeat(24) : command.replace(TOKEN, "$1••••••••••••$3");
  return (
    <div
      className="flex items-start gap-2 rounded-lg border border-line bg-inset py-1.5 pr-1.5 pl-3 max-sm:flex-col max-sm:gap-1"
      role="group"
      aria-label={label}
    >
      {/* A command wrapped at a dash reads as another one: scroll instead. */}
      <code
        className="min-w-0 flex-1 overflow-x-auto py-1 text-sm whitespace-pre max-sm:w-full max-sm:flex-none"
        data-testid={testId}
        tabIndex={0}
      >
        {shown || !hides ? command : masked}
      </code>
      <div className="flex shrink-0 gap-1 max-sm:self-end">
        {hides ? (
          <IconButton
            label={shown ? `Hide ${noun}` : `Show ${noun}`}
            size="sm"
            aria-pressed={shown}
            onClick={() => setShown(!shown)}
          >
            {shown ? <EyeOff /> : <Eye />}
          </IconButton>
        ) : null}
        <CopyButton text={command} />
      </div>
    </div>
  );
}

export function CopyButton({
  text,
  label = "Copy",
  iconOnly = false,
}: {
  text: string;
  label?: string;
  iconOnly?: boolean;
}) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = window.setTimeout(() => setCopied(false), SHOWN_MS);
    return () => window.clearTimeout(timer);
  }, [copied]);
  const copy = () => void copyOrReport(text).then(setCopied);
  const icon = copied ? <Check /> : <Copy />;
  return (
    <>
      {iconOnly ? (
        <IconButton label={copied ? "Copied" : label} size="sm" onClick={copy}>
          {icon}
        </IconButton>
      ) : (
        <Button variant="quiet" size="sm" onClick={copy} data-testid="copy" icon={icon}>
          {copied ? "Copied" : label}
        </Button>
      )}
      <span className="sr-only" role="status">
        {copied ? "Copied to the clipboard." : ""}
      </span>
    </>
  );
}
