// The owner of the new workspace.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { useMe } from "../../../features/session/useMe";
import { get, withQuery } from "../../../api/client";
import type { GetUsersResponse, User } from "../../../api/types";
import { Avatar } from "../../../ui/Avatar";
import { Combobox } from "../../../ui/forms/Combobox";

export type Owner = Pick<User, "id" | "username">;

export function OwnerField({
  value,
  onChange,
}: {
  value: Owner;
  onChange: (owner: Owner) => void;
}) {
  const me = useMe();
  const [text, setText] = useState("");
  const answer = useQuery({
    queryKey: ["users", "search", text],
    queryFn: () => get<GetUsersResponse>(withQuery("/api/v2/users", { q: text, limit: 25 })),
  });
  const results = answer.data?.users ?? [me];
  const users = results.some((user) => user.id === value.id)
    ? results
    : [me, ...results.filter((user) => user.id !== me.id)];
  return (
    <Combobox
      label="Owner"
      value={value.id}
      onChange={(id) => onChange(users.find((user) => user.id === id) ?? me)}
      onSearch={setText}
      failure={answer.isLoadingError ? `The search failed: ${answer.error.message}` : undefined}
      options={users.map((user) => ({
        value: user.id,
        text: user.username,
        hint: user.email,
        icon: <Avatar name={user.username} src={user.avatar_url} size="xs" />,
      }))}
    />
  );
}
