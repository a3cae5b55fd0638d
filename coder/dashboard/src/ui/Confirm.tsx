// Confirmation before an irreversible action: it names what will be lost and, for the worst,
// requires typing the name.
import { useEffect, useId, useState, type ReactNode } from "react";

import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { Failure } from "./Failure";
import { TextField } from "./forms/Field";

interface ConfirmProps {
  open: boolean;
  onClose: () => void;
  title: string;
  /** The effects, and what will be lost. */
  children: ReactNode;
  confirm: string;
  danger?: boolean;
  /** The name that the user has to type. */
  typed?: string | undefined;
  typedLabel?: string;
  extra?: ReactNode;
  onConfirm: () => Promise<unknown>;
}

export function Confirm({
  open,
  onClose,
  title,
  children,
  confirm,
  danger = true,
  typed,
  typedLabel,
  extra,
  onConfirm,
}: ConfirmProps) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const form = useId();
  useEffect(() => {
    if (!open) return;
    setText("");
    setError(null);
  }, [open]);
  const ready = typed === undefined || text === typed;
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onClose();
    } catch (caught) {
      setError(caught instanceof Error ? caught : new Error(String(caught)));
    } finally {
      setBusy(false);
    }
  };
  return (
    // A dialog closed during the request could not show its rejection.
    <Dialog
      open={open}
      held={busy}
      onClose={() => {
        if (!busy) onClose();
      }}
      title={title}
      actions={
        <>
          {/* Next to a button that cancels something, "Cancel" would be ambiguous. */}
          <Button disabled={busy} onClick={onClose}>
            {confirm.startsWith("Cancel") ? "Go back" : "Cancel"}
          </Button>
          <Button
            type="submit"
            form={form}
            variant={danger ? "danger" : "primary"}
            busy={busy}
            disabled={!ready}
            data-testid="confirm-button"
          >
            {confirm}
          </Button>
        </>
      }
    >
      <form
        id={form}
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready && !busy) void run();
        }}
      >
        <div className="flex flex-col gap-2 text-base text-muted [overflow-wrap:anywhere]">
          {children}
        </div>
        {typed === undefined ? null : (
          <TextField
            label={
              <>
                {typedLabel ?? "Name"}: type{" "}
                <strong className="[overflow-wrap:anywhere]">{typed}</strong> to confirm
              </>
            }
            value={text}
            onChange={setText}
            autoComplete="off"
            spellCheck={false}
            data-testid="delete-dialog-name-confirmation"
          />
        )}
        {extra}
        {error ? <Failure error={error} /> : null}
      </form>
    </Dialog>
  );
}
