import { expect, it } from "vitest";

import { rank } from "./CommandPalette";

it.each([
  ["Users people invite /deployment/users", "invite", 1],
  ["Users people invite /deployment/users", "Inv", 1],
  ["Users people invite /deployment/users", "users dep", 1],
  ["workspace ana/dev-box", "box", 1],
  ["workspace ana/dev-box", "ox", 0.5],
  ["Security sessions end /settings/security", "invite", 0],
  ["Secrets /settings/secrets", "session", 0],
  ["Users people", "users nowhere", 0],
  ["anything", " ", 1],
])("ranks %j for %j: %d", (item, typed, expected) => expect(rank(item, typed)).toBe(expected));
