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
          // The dot stands in the gap; at the start of a line it is clipped.
          <p className="flex flex-wrap gap-x-4 overflow-hidden text-sm text-muted [overflow-wrap:anywhere]">
            {below.map((text) => (
              <span
                key={text}
                className="relative not-first:before:absolute not-first:before:-left-2.5 not-first:before:content-['·'/'']"
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
