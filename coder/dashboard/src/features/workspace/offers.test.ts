import { expect, it } from "vitest";

import type { OfferedVersion, Workspace } from "../../api/types";
import { isStaged, withOffers } from "./offers";

const workspace = (id: string, version: string): Workspace =>
  ({
    id,
    outdated: version !== "v1",
    template_active_version_id: "v1",
    latest_build: { template_version_id: version },
  }) as Workspace;

const offer = (workspace_id: string, version: string, rollout: string | null): OfferedVersion => ({
  workspace_id,
  template_version_id: version,
  template_version_name: version,
  rollout_id: rollout,
  is_staged: version !== "v1",
  outdated: true,
});

const result = (item: Workspace | undefined) =>
  item && [item.template_active_version_id, item.outdated, isStaged(item)];

it.each([
  ["in the stage", "v1", offer("w", "v2", "r"), ["v2", true, true]],
  ["in the stage, updated", "v2", offer("w", "v2", "r"), ["v2", false, true]],
  ["not in the stage", "v1", offer("w", "v1", "r"), ["v1", false, false]],
  ["without a rollout", "v0", offer("w", "v1", null), ["v1", true, false]],
  ["of another workspace", "v1", offer("x", "v2", "r"), ["v1", false, false]],
])("a workspace %s", (_, version, offered, expected) => {
  const [item] = withOffers([workspace("w", version)], [offered]);
  expect(result(item)).toEqual(expected);
});
