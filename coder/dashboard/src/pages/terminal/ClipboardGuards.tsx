// Questions about the clipboard: before several lines are pasted, and when the browser did not let a
// program copy.
import { counted } from "../../lib/words";
import { Button } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { Notice } from "../../ui/Notice";
import { copyOrReport } from "../../ui/text/clipboard";
import { pastedLines } from "./paste";

const SHOWN_CHARS = 4000;

interface ClipboardGuardsProps {
  pasted: string | null;
  /** A text that a program copied and the browser refused. */
  refused: string | null;
  onPaste: (text: string) => void;
  onPasteEnd: () => void;
  onCopyEnd: () => void;
}

export function ClipboardGuards({
  pasted,
  refused,
  onPaste,
  onPasteEnd,
  onCopyEnd,
}: ClipboardGuardsProps) {
  const lines = pastedLines(pasted ?? "");
  return (
    <>
      {refused === null ? null : (
        <div className="absolute inset-x-3 top-3 z-10 mx-auto max-w-xl">
          <Notice
            kind="info"
            title={`A program in the terminal copied ${counted(refused.length, "character")}`}
            actions={
              <>
                <Button
                  size="sm"
                  onClick={() => {
                    void copyOrReport(refused).then(onCopyEnd);
                  }}
                >
                  Copy
                </Button>
                <Button size="sm" variant="quiet" onClick={onCopyEnd}>
                  Dismiss
                </Button>
              </>
            }
          >
            Your browser requires a click before it changes the clipboard.
          </Notice>
        </div>
      )}
      <Confirm
        open={pasted !== null}
        onClose={onPasteEnd}
        danger={false}
        title={`Paste ${lines} lines?`}
        confirm={`Paste ${lines} lines`}
        onConfirm={async () => onPaste(pasted ?? "")}
      >
        <p>The program in the terminal may run each line as soon as it is pasted.</p>
        <pre className="max-h-64 overflow-auto rounded-lg border border-line bg-inset p-3 text-sm whitespace-pre-wrap text-text">
          {(pasted ?? "").slice(0, SHOWN_CHARS)}
          {(pasted ?? "").length > SHOWN_CHARS ? "…" : ""}
        </pre>
      </Confirm>
    </>
  );
}
