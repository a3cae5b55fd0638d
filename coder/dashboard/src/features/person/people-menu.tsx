// Menus of a search bar whose choices are users: the server searches, however many there are.
import { get, withQuery } from "../../api/client";
import type { GetUsersResponse } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import type { FilterMenu } from "../../ui/lists/FilterBar";

const SHOWN = 25; // typing finds the rest

/** `any` is the text of the button without a choice. */
export function peopleMenu(term: string, label: string, any = label): FilterMenu {
  return {
    term,
    label,
    any,
    options: [{ value: "me", text: "Me" }],
    find: (text) => ({
      queryKey: ["users", "menu", text],
      queryFn: async () =>
        (
          await get<GetUsersResponse>(withQuery("/api/v2/users", { q: text, limit: SHOWN }))
        ).users.map((user) => ({
          value: user.username,
          text: user.username,
          hint: user.name || user.email,
          icon: <Avatar name={user.username} src={user.avatar_url} size="xs" />,
        })),
    }),
  };
}
