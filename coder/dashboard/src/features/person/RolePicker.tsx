// The roles of one user, ticked in a panel; each change is sent at once and rolled back when the
// server rejects it.
import { Pencil } from "lucide-react";

import type { AssignableRoles } from "../../api/types";
import { IconButton } from "../../ui/Button";
import { Checkbox } from "../../ui/forms/Toggle";
import { Popover } from "../../ui/Popover";

interface RolePickerProps {
  name: string;
  /** Names of the user's roles. */
  chosen: readonly string[];
  roles: readonly AssignableRoles[];
  onChange: (roles: string[]) => void;
  /** A short description of each role. */
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
              onChange(on ? [...chosen, role.name] : chosen.filter((other) => other !== role.name))
            }
          />
        ))}
        <p className="border-t border-line pt-2 text-sm text-muted">
          Everyone is also a Member: members can use what is shared with them.
        </p>
      </fieldset>
    </Popover>
  );
}
