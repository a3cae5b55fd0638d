// The roles of one person, ticked in a panel; each change is sent at once and taken back when the server refuses it.
import { Pencil } from "lucide-react";

import type { AssignableRoles } from "../../api/types";
import { IconButton } from "../../ui/Button";
import { Checkbox } from "../../ui/forms/Toggle";
import { Popover } from "../../ui/Popover";

interface RolePickerProps {
  name: string;
  /** Names of the roles the person has. */
  chosen: readonly string[];
  roles: readonly AssignableRoles[];
  onChange: (roles: string[]) => void;
  /** What each role is good for. */
  hints?: Readonly<Record<string, string>>;
}

export function RolePicker({ name, chosen, roles, onChange, hints = {} }: RolePickerProps) {
  return (
    <Popover
      label={`Roles of ${name}`}
      align="start"
      trigger={
        <IconButton size="sm" label="Edit user roles">
          <Pencil />
        </IconButton>
      }
    >
      <fieldset className="flex flex-col gap-3">
        <legend className="mb-2 font-semibold">Roles of {name}</legend>
        {roles.map((role) => (
          <Checkbox
            key={role.name}
            label={role.display_name || role.name}
            hint={hints[role.name]}
            checked={chosen.includes(role.name)}
            disabled={!role.assignable}
            onChange={(on) =>
              onChange(on ? [...chosen, role.name] : chosen.filter((one) => one !== role.name))
            }
          />
        ))}
        <p className="border-t border-line pt-2 text-sm text-muted">
          Everybody is a member besides: they may use what is shared with them.
        </p>
      </fieldset>
    </Popover>
  );
}
