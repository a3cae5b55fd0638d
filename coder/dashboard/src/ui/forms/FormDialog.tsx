// A dialog that holds one form. It stays open while the form is sent.
import { useId, type ReactNode } from "react";

import { Button } from "../Button";
import { Dialog } from "../Dialog";
import { Failure } from "../Failure";
import { Stack } from "../Page";
import type { Form } from "./form";

export function FormDialog({
  title,
  description,
  form,
  submit,
  onClose,
  children,
}: {
  title: string;
  description?: string;
  form: Pick<Form<unknown>, "busy" | "error" | "submit">;
  /** Text of the button that sends the form. */
  submit: string;
  onClose: () => void;
  /** The fields. */
  children: ReactNode;
}) {
  const id = useId();
  return (
    <Dialog
      open
      held={form.busy}
      onClose={() => {
        if (!form.busy) onClose();
      }}
      title={title}
      description={description}
      actions={
        <>
          <Button disabled={form.busy} onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" form={id} variant="primary" busy={form.busy}>
            {submit}
          </Button>
        </>
      }
    >
      <form id={id} onSubmit={form.submit}>
        <Stack>
          {form.error ? <Failure error={form.error} /> : null}
          {children}
        </Stack>
      </form>
    </Dialog>
  );
}
