import { expect, it } from "vitest";

import { inTurn } from "./turns";
import { soon } from "../test/soon";

function door() {
  const sent: string[] = [];
  const answers: (() => void)[] = [];
  const send = (what: string) => () => {
    sent.push(what);
    return new Promise<string>((done) => answers.push(() => done(what)));
  };
  return { sent, answers, send };
}

it("serializes changes of one object, not of several", async () => {
  const { sent, answers, send } = door();
  const first = inTurn("a", send("first"));
  const second = inTurn("a", send("second"));
  void inTurn("b", send("other"));
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
  const refused = inTurn("c", () => Promise.reject(new Error("no")));
  const next = inTurn("c", () => Promise.resolve("yes"));
  await expect(refused).rejects.toThrow("no");
  expect(await next).toBe("yes");
});

it("sends waiting changes when the page is left", async () => {
  const { sent, send } = door();
  void inTurn("d", send("first"));
  void inTurn("d", send("second"));
  void inTurn("d", send("third"));
  window.dispatchEvent(new Event("pagehide"));
  await Promise.resolve()
    .then(() => undefined)
    .then(() => undefined);
  expect(sent).toEqual(["first", "second", "third"]);
  window.dispatchEvent(new Event("pageshow"));
  void inTurn("e", send("later"));
  void inTurn("e", send("waits again"));
  expect(sent.at(-1)).toBe("later");
});
