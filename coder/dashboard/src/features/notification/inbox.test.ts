import { expect, it } from "vitest";

import type { InboxNotification } from "../../api/types";
import { withArrived, withRead, withStep } from "./inbox";
import { ownPath } from "./own-path";

const message = (id: string, read_at: string | null = null): InboxNotification => ({
  id,
  user_id: "",
  template_id: "",
  targets: [],
  title: id,
  content: "",
  icon: "",
  actions: [],
  read_at,
  created_at: "",
});

it("puts a new message first, once", () => {
  const list = { notifications: [message("a"), message("b")], unread_count: 2 };
  const next = withArrived(list, { notification: message("b"), unread_count: 2 });
  expect(next.notifications.map((item) => item.id)).toEqual(["b", "a"]);
  expect(withArrived(next, { notification: message("c"), unread_count: 3 }).unread_count).toBe(3);
});

it("marks one or all as read", () => {
  const list = { notifications: [message("a"), message("b")], unread_count: 2 };
  expect(withRead(list, "a", "now", 1).notifications.map((item) => item.read_at)).toEqual([
    "now",
    null,
  ]);
  expect(withRead(list, null, "now", 0).notifications.map((item) => item.read_at)).toEqual([
    "now",
    "now",
  ]);
});

it("counts a message once when repeated", () => {
  const list = { notifications: [message("a"), message("b")], unread_count: 2 };
  const read = withStep(list, "a", "now");
  expect([read.unread_count, read.notifications[0]?.read_at]).toEqual([1, "now"]);
  expect(withStep(read, "a", "later")).toBe(read);
  expect(withStep(read, "a", null).unread_count).toBe(2);
  expect(withStep(list, "of another page", "now").unread_count).toBe(1);
});

it.each([
  ["https://here.test/@ana/dev?x=1", "/@ana/dev?x=1"],
  ["/templates", "/templates"],
  ["https://elsewhere.test/a", null],
  ["javascript:alert(1)", null],
])("%s as own path is %s", (address, path) => {
  expect(ownPath(address, "https://here.test")).toBe(path);
});
