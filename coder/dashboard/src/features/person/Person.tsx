// A user as a table row: the username that others type, the full name and the email address below.
import type { ReactNode } from "react";

import { Avatar } from "../../ui/Avatar";

interface PersonProps {
  person: { username: string; name?: string; email?: string; avatar_url?: string };
  /** Shown next to the username. */
  tag?: ReactNode;
}

export function Person({ person, tag }: PersonProps) {
  const below = [person.name, person.email].filter(
    (text): text is string => Boolean(text) && text !== person.username,
  );
  return (
    <div className="flex items-center gap-3 sm:min-w-40">
      <Avatar name={person.username} src={person.avatar_url} />
      <div className="min-w-24 sm:min-w-32">
        <p className="font-medium [overflow-wrap:anywhere]">
          {person.username}
          {tag ? <> {tag}</> : null}
        </p>
        {below.length > 0 ? (
          <p className="flex flex-wrap gap-x-1.5 text-sm text-muted [overflow-wrap:anywhere]">
            {below.map((text) => (
              <span
                key={text}
                className="not-first:before:mr-1.5 not-first:before:content-['·'/'']"
              >
                {text}
              </span>
            ))}
          </p>
        ) : null}
      </div>
    </div>
  );
}
