// An empty state: the purpose, the button that creates the first item, the equivalent command.
import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

import { CodeBox } from "./text/CodeBox";

interface EmptyProps {
  icon?: LucideIcon;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
  command?: string;
  level?: 1 | 2 | 3;
}

export function Empty({ icon: Icon, title, children, actions, command, level = 2 }: EmptyProps) {
  const Heading = `h${level}` as const;
  return (
    <div className="mx-auto flex max-w-4xl flex-col items-center gap-3 px-4 py-12 text-center">
      {Icon ? (
        <span className="grid size-11 place-items-center rounded-xl border border-line bg-inset text-muted">
          <Icon className="size-5" aria-hidden="true" />
        </span>
      ) : null}
      <Heading className="text-lg font-semibold">{title}</Heading>
      {children ? <div className="max-w-lg text-base text-muted">{children}</div> : null}
      {actions ? <div className="flex flex-wrap justify-center gap-2">{actions}</div> : null}
      {command ? (
        <div className="mt-1 max-w-full min-w-0 text-left">
          <CodeBox command={command} label="Equivalent command" />
        </div>
      ) : null}
    </div>
  );
}
