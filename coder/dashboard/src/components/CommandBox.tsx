// A command to run elsewhere: the token hidden until asked for, one button that copies all of it.
import { useState } from "react";

const TOKEN = /(CODER_AGENT_TOKEN=")([^"]+)(")/;

export function CommandBox({ command, label }: { command: string; label: string }) {
  const [shown, setShown] = useState(false);
  const [copied, setCopied] = useState(false);
  const hasToken = TOKEN.test(command);
  const text = shown ? command : command.replace(TOKEN, "$1••••••••••••$3");
  const copy = async () => {
    await copyText(command);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div className="command" role="group" aria-label={label}>
      <code data-testid="command">{text}</code>
      <div className="command-buttons">
        {hasToken ? (
          <button type="button" className="quiet" onClick={() => setShown(!shown)} aria-pressed={shown}>
            {shown ? "Hide token" : "Show token"}
          </button>
        ) : null}
        <button type="button" onClick={() => void copy()} data-testid="copy">{copied ? "Copied" : "Copy"}</button>
        <span className="hidden" role="status">{copied ? "The command is on the clipboard." : ""}</span>
      </div>
    </div>
  );
}

async function copyText(text: string): Promise<void> {
  // The clipboard interface exists only on HTTPS and localhost; a plain-HTTP deployment still has the old way.
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return;
    } catch {
      // permission refused: fall through
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
