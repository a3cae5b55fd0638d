import { expect, it } from "vitest";

import { serialized } from "./serialized";
import { soon } from "../test/soon";

function fakeServer() {
  const sent: string[] = [];
  const answers: (() => void)[] = [];
  const send = (body: string) => () => {
    sent.push(body);
    return new Promise<string>((done) => answers.push(() => done(body)));
  };
  return { sent, answers, send };
}

it("serializes changes of one object, not of several", async () => {
  const { sent, answers, send } = fakeServer();
  const first = serialized("a", send("first"));
  const second = serialized("a", send("second"));
  void serialized("b", send("other"));
  expect(sent).toEqual(["first", "other"]);
  answers[0]?.();
  expect(await first).toBe("first");
  await soon(() => {
    expect(sent).toEqual(["first", "other", "second"]);
  });
  answers[2]?.();
  expect(await second).toBe("second");
});

it("continues after a rejection", async () => {
  const refused = serialized("c", () => Promise.reject(new Error("no")));
  const next = serialized("c", () => Promise.resolve("yes"));
  await expect(refused).rejects.toThrow("no");
  expect(await next).toBe("yes");
});

it("sends waiting changes when the page is left", async () => {
  const { sent, send } = fakeServer();
  void serialized("d", send("first"));
  void serialized("d", send("second"));
  void serialized("d", send("third"));
  window.dispatchEvent(new Event("pagehide"));
  await Promise.resolve()
    .then(() => undefined)
    .then(() => undefined);
  expect(sent).toEqual(["first", "second", "third"]);
  window.dispatchEvent(new Event("pageshow"));
  void serialized("e", send("later"));
  void serialized("e", send("waits again"));
  expect(sent.at(-1)).toBe("later");
});
