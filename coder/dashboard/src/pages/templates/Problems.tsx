// Errors and warnings of a template, each with a link to its line.
import { CircleAlert, TriangleAlert } from "lucide-react";

import type { Problem } from "./problems";

interface ProblemsProps {
  problems: readonly Problem[];
  /** Whether the file is in the file tree. */
  has: (file: string) => boolean;
  onShow: (location: { file: string; line: number }) => void;
}

export function Problems({ problems, has, onShow }: ProblemsProps) {
  if (problems.length === 0) return null;
  return (
    <ul
      aria-label="Problems"
      className="mt-1.5 flex max-h-56 flex-col gap-1.5 overflow-y-auto text-text"
    >
      {problems.map(({ severity, title, detail, location }, index) => {
        const Icon = severity === "error" ? CircleAlert : TriangleAlert;
        const isInTree = location ? `${location.file}:${location.line}` : "";
        return (
          <li key={index} className="flex gap-2">
            <Icon
              role="img"
              aria-label={severity === "error" ? "Error" : "Warning"}
              className={`mt-0.5 size-4 shrink-0 ${severity === "error" ? "text-bad" : "text-warn"}`}
            />
            <div className="min-w-0 font-mono text-xs [overflow-wrap:anywhere]">
              <p>
                {title}
                {location ? (
                  <>
                    {" "}
                    {has(location.file) ? (
                      <button
                        type="button"
                        className="text-accent-text underline underline-offset-2"
                        onClick={() => onShow(location)}
                      >
                        {isInTree}
                      </button>
                    ) : (
                      <span className="text-muted">{isInTree}</span>
                    )}
                  </>
                ) : null}
              </p>
              {detail ? <p className="text-muted">{detail}</p> : null}
            </div>
          </li>
        );
      })}
    </ul>
  );
}
