// The second step of the template builder: modules that work with the base.
import type { TemplateBuilderModule } from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Section } from "../../../ui/Card";
import { Checkbox } from "../../../ui/forms/Toggle";
import { Stack } from "../../../ui/Page";
import { byCategory, conflictOf } from "./composition";

export function ModulesStep({
  modules,
  chosen,
  onChange,
}: {
  modules: readonly TemplateBuilderModule[];
  chosen: readonly TemplateBuilderModule[];
  onChange: (ids: readonly string[]) => void;
}) {
  const ids = chosen.map((module) => module.id);
  return (
    <Stack>
      <p className="text-muted">
        Modules add editors, scripts and links to each workspace. You can go on without any.
      </p>
      {byCategory(modules).map(([category, group]) => (
        <Section key={category} title={category}>
          <ul className="grid grid-cols-[repeat(auto-fill,minmax(min(19rem,100%),1fr))] gap-4">
            {group.map((module) => {
              const other = conflictOf(module, chosen);
              return (
                <li key={module.id} className="flex items-start justify-between gap-3">
                  <Checkbox
                    label={module.display_name}
                    hint={
                      other
                        ? `Cannot be combined with ${other.display_name}.`
                        : `${module.description}.`
                    }
                    checked={ids.includes(module.id)}
                    disabled={other !== undefined}
                    onChange={(on) =>
                      onChange(on ? [...ids, module.id] : ids.filter((id) => id !== module.id))
                    }
                  />
                  <Avatar name={module.display_name} src={module.icon} size="sm" square />
                </li>
              );
            })}
          </ul>
        </Section>
      ))}
    </Stack>
  );
}
