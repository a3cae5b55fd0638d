// The attach commands of several machines: shown until the user closes them, since a rotated token cannot
// be requested a second time without another rotation of it.
import { reasonOf } from "../../../api/client";
import { counted } from "../../../lib/words";
import { Button } from "../../../ui/Button";
import { Dialog } from "../../../ui/Dialog";
import { Notice } from "../../../ui/Notice";
import { CodeBox, CopyButton } from "../../../ui/text/CodeBox";
import { attachScript, type Loaded } from "./fleet";

export function Commands({
  title,
  loaded: { commands, failed },
  onClose,
}: {
  title: string;
  loaded: Loaded;
  onClose: () => void;
}) {
  return (
    <Dialog
      open
      held
      wide
      onClose={onClose}
      title={title}
      description={commands.length > 0 ? "Run each command on its machine." : undefined}
      actions={
        <>
          {commands.length > 0 ? (
            <CopyButton text={attachScript(commands)} label="Copy all" />
          ) : null}
          <Button variant="primary" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        {failed.length > 0 ? (
          <Notice kind="error" title={`${counted(failed.length, "machine")} failed`}>
            {failed.map(({ name, error }) => (
              <p key={name}>
                {name}: {reasonOf(error)}
              </p>
            ))}
          </Notice>
        ) : null}
        {commands.map(([name, command]) => (
          <div key={name} className="flex flex-col gap-1">
            <p className="font-medium [overflow-wrap:anywhere]">{name}</p>
            <CodeBox command={command} label={`Attach command of ${name}`} />
          </div>
        ))}
      </div>
    </Dialog>
  );
}
