// The commonest errors of a template's builds, each with its latest builds.
import type { BuildErrorReport, ReportedBuild } from "../../../api/types";
import { TextLink } from "../../../ui/Page";

const SHOWN = 10;

export const buildPath = (build: ReportedBuild) =>
  `/@${build.workspace_owner_name}/${build.workspace_name}/builds/${build.build_number}`;

export function Errors({
  errors,
  failed,
}: {
  errors: readonly BuildErrorReport[];
  /** Failed builds of all workspaces: the errors are those of the viewer's. */
  failed: number;
}) {
  return errors.length === 0 ? (
    <p className="px-5 py-4 text-muted">
      {failed === 0
        ? "No build failed."
        : "The failed builds are of workspaces that you may not see."}
    </p>
  ) : (
    <ul className="divide-y divide-line">
      {errors.slice(0, SHOWN).map(({ error, count, builds }) => (
        <li key={error} className="px-5 py-2.5">
          <p className="[overflow-wrap:anywhere]">
            <span className="mr-2 text-muted tabular-nums">{count}×</span>
            {error || "No reason given"}
          </p>
          <p className="flex flex-wrap gap-x-3 text-sm text-muted">
            {builds.map((build) => (
              <TextLink key={buildPath(build)} to={buildPath(build)}>
                {build.workspace_owner_name}/{build.workspace_name} #{build.build_number}
              </TextLink>
            ))}
            {count > builds.length ? `${count - builds.length} more` : null}
          </p>
        </li>
      ))}
    </ul>
  );
}
