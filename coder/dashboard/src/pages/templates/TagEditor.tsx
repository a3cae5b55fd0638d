// The provisioner tags of a version: shown next to its build, changed for the next one.
import { Tags as TagsIcon, X } from "lucide-react";
import { useState, type FormEvent } from "react";

import { Count, Tag } from "../../ui/Badge";
import { Button, IconButton } from "../../ui/Button";
import { TextField } from "../../ui/forms/Field";
import { Popover } from "../../ui/Popover";
import { tagEntries } from "../../features/provisioner/tags";

export type ProvisionerTags = Readonly<Record<string, string>>;

/** The server sets these two based on the author of the version; the author chooses the others. */
const FIXED = ["scope", "owner"];

export function TagEditor({
  tags,
  onChange,
}: {
  tags: ProvisionerTags;
  onChange: (tags: ProvisionerTags) => void;
}) {
  const own = tagEntries(tags).filter(([name]) => !FIXED.includes(name));
  const removeTag = (name: string) =>
    onChange(Object.fromEntries(Object.entries(tags).filter(([other]) => other !== name)));
  return (
    <Popover
      label="Provisioner tags"
      align="start"
      className="w-88 p-4"
      trigger={
        <Button icon={<TagsIcon />} aria-label={`Expand provisioner tags ${own.length}`}>
          Provisioner tags <Count value={own.length} />
        </Button>
      }
    >
      <h2 className="font-semibold">Provisioner tags</h2>
      <p className="mt-0.5 mb-3 text-sm text-muted">
        The next build, and workspaces created from it, run only on provisioners with all of these
        tags.
      </p>
      {own.length === 0 ? (
        <p className="mb-3 text-sm text-muted">
          No tags: an untagged provisioner runs it, or a tagged one while no untagged one is
          connected.
        </p>
      ) : (
        <ul aria-label="Tags" className="mb-3 flex flex-wrap gap-1.5">
          {own.map(([name, value]) => (
            <li key={name} className="flex max-w-full items-center gap-0.5">
              <Tag>
                {name}={value}
              </Tag>
              <IconButton size="sm" label={`Remove tag ${name}`} onClick={() => removeTag(name)}>
                <X />
              </IconButton>
            </li>
          ))}
        </ul>
      )}
      {tags["scope"] === "user" ? (
        <p className="mb-3 text-sm text-muted">Builds run only on the provisioners of one user.</p>
      ) : null}
      <NewTag
        taken={Object.keys(tags)}
        onAdd={(name, value) => onChange({ ...tags, [name]: value })}
      />
    </Popover>
  );
}

function NewTag({
  taken,
  onAdd,
}: {
  taken: readonly string[];
  onAdd: (name: string, value: string) => void;
}) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [problem, setProblem] = useState<string>();
  const add = (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation(); // the panel may be inside another form
    const key = name.trim();
    const invalid =
      key === ""
        ? "Enter a key."
        : FIXED.includes(key)
          ? "The server sets this tag."
          : taken.includes(key)
            ? "A tag with this key already exists."
            : undefined;
    setProblem(invalid);
    if (invalid !== undefined) return;
    onAdd(key, value.trim());
    setName("");
    setValue("");
  };
  return (
    <form className="flex items-start gap-2" onSubmit={add}>
      <div className="min-w-0 flex-1">
        <TextField
          label="Key"
          autoComplete="off"
          spellCheck={false}
          value={name}
          problem={problem}
          placeholder="os"
          onChange={setName}
        />
      </div>
      <div className="min-w-0 flex-1">
        <TextField
          label="Value"
          autoComplete="off"
          spellCheck={false}
          value={value}
          placeholder="linux"
          onChange={setValue}
        />
      </div>
      <Button type="submit" className="mt-6.5">
        Add tag
      </Button>
    </form>
  );
}
