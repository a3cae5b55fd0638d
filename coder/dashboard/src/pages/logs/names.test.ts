import { expect, it } from "vitest";

import { referencesOf, withNames } from "./names";

const ANA = "32bd3e51-0000-4000-8000-000000000001";
const TEAM = "32bd3e51-0000-4000-8000-000000000002";
const NIL = "00000000-0000-0000-0000-000000000000";
const change = (old: unknown, next: unknown, secret = false) => ({ old, new: next, secret });

it("finds the objects of fields that contain ids", () => {
  expect(
    referencesOf({
      id: change("", TEAM),
      group_acl: change({}, { [TEAM]: "use" }),
      owner_id: change(NIL, ANA),
      user_acl: change({ [ANA]: "use" }, { [ANA]: "admin" }),
      value: change(ANA, ANA, true),
    }),
  ).toEqual([
    { kind: "group", id: TEAM },
    { kind: "user", id: ANA },
  ]);
});

it("limits the requests of one entry", () => {
  const many = Array.from({ length: 30 }, (_, at) => [ANA.slice(0, -2) + String(at + 10), "use"]);
  expect(referencesOf({ user_acl: change({}, Object.fromEntries(many)) })).toHaveLength(20);
});

it("replaces known ids only", () => {
  const names = new Map([[ANA, "ana"]]);
  expect(withNames(`${ANA}: use, ${TEAM}: admin`, names)).toBe(`ana: use, ${TEAM}: admin`);
});
