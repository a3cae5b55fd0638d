// Search for one user and add them to an organization or a group.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { UserPlus } from "lucide-react";
import { useState } from "react";

import { members } from "../../api/queries/organizations";
import { users } from "../../api/queries/people";
import { Avatar } from "../../ui/Avatar";
import { Button } from "../../ui/Button";
import { SearchCombobox } from "../../ui/forms/SearchCombobox";

const SHOWN = 50; // the server returns more as the user types

export interface Person {
  id: string;
  username: string;
  email: string;
  avatar_url?: string | undefined;
}

interface PersonSearchProps {
  /** Users who are already members: they are not offered. */
  exclude: ReadonlySet<string>;
  onAdd: (person: Person) => Promise<unknown>;
  /** Only members of this organization; absent: all users visible to the viewer. */
  organization?: string | undefined;
}

export function PersonSearch({ exclude: without, onAdd, organization }: PersonSearchProps) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState("");
  const [busy, setBusy] = useState(false);
  const allUsers = useQuery({
    ...users(text, 1, SHOWN),
    placeholderData: keepPreviousData,
    enabled: organization === undefined,
  });
  const inside = useQuery({
    ...members(organization ?? "", text, 1, SHOWN),
    placeholderData: keepPreviousData,
    enabled: organization !== undefined,
  });
  const { error } = organization === undefined ? allUsers : inside;
  const people: readonly Person[] =
    organization === undefined
      ? (allUsers.data?.users ?? [])
      : (inside.data?.members ?? []).map(({ user_id, username, email, avatar_url }) => ({
          id: user_id,
          username,
          email,
          avatar_url,
        }));
  const offered = people.filter((person) => !without.has(person.id));
  const add = async () => {
    const person = offered.find((candidate) => candidate.id === chosen);
    if (!person) return;
    setBusy(true);
    await onAdd(person).catch(() => undefined); // the caller reports the error
    setBusy(false);
    setChosen("");
  };
  return (
    <div className="mb-4 flex flex-wrap items-end gap-2">
      <div className="min-w-60 max-w-md flex-1">
        <SearchCombobox
          label="User"
          hideLabel
          value={chosen}
          onChange={setChosen}
          onSearch={setText}
          placeholder="User email or username"
          empty={error ? `Failed to search users: ${error.message}` : "No users found"}
          options={offered.map((person) => ({
            value: person.id,
            text: person.username,
            hint: person.email,
            icon: <Avatar name={person.username} src={person.avatar_url} size="xs" />,
          }))}
        />
      </div>
      <Button
        variant="primary"
        icon={<UserPlus />}
        disabled={chosen === ""}
        busy={busy}
        onClick={() => void add()}
      >
        Add user
      </Button>
    </div>
  );
}
