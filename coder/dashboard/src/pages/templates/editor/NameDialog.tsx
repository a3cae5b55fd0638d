// The path of a new file of a template, or a new path for an existing file.
import { Button } from "../../../ui/Button";
import { Dialog } from "../../../ui/Dialog";
import { TextField } from "../../../ui/forms/Field";
import { useForm } from "../../../ui/forms/form";

export function NameDialog({
  title,
  start,
  taken,
  onClose,
  onName,
}: {
  title: string;
  start: string;
  taken: readonly string[];
  onClose: () => void;
  onName: (name: string) => void;
}) {
  const form = useForm(
    { name: start },
    async ({ name }) => onName(name),
    ({ name }) => {
      if (name !== start && taken.includes(name))
        return { name: "A file with this path already exists." };
      if (!/^[\w.-]+(?:\/[\w.-]+)*$/.test(name) || name.split("/").includes(".."))
        return { name: "Use letters, digits, dots and hyphens; separate folders with slashes." };
      return {};
    },
  );
  return (
    <Dialog open onClose={onClose} title={title}>
      <form className="flex flex-col gap-4" onSubmit={form.submit}>
        <TextField
          label="File path"
          autoFocus
          required
          value={form.values.name}
          problem={form.problem("name")}
          placeholder="main.tf"
          onChange={(value) => form.set("name", value)}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary">
            {start ? "Rename file" : "Create file"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
