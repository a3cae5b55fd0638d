import { describe, expect, it } from "vitest";

import type { AgentLights, LightValue } from "../../../api/types";
import { diagnose, numberOf, type Measured } from "./diagnose";
import type { Speed } from "./speed";

const value = (name: string, text: string, status: LightValue["status"] = "good"): LightValue => ({
  name,
  value: text,
  status,
  at: "2026-01-01T00:00:00Z",
  age_seconds: 1,
});
const lights = (path: LightValue[], host: LightValue[] = []): AgentLights => ({
  host: { status: "good", values: host },
  agent: { status: "good", values: [] },
  path: { status: "good", values: path },
});
const FINE = [
  value("way", "1 direct"),
  value("round trip", "2 ms to the server"),
  value("loss", "0 %"),
];
const measured = (change: Partial<Measured> = {}): Measured => ({
  agent: { status: "connected", lifecycle_state: "ready" },
  lights: lights(FINE),
  browserMs: 20,
  nearer: null,
  speed: null,
  directDisabled: false,
  ...change,
});
const speed = (browser: number, agent: number): Speed => ({
  browser: { down: browser, up: 90 },
  agent: { down: 90, up: agent },
  via: "direct",
});
const titles = (change?: Partial<Measured>) => diagnose(measured(change)).map((item) => item.title);

describe("diagnosis", () => {
  it.each([
    ["a fast connection", {}, []],
    ["a fast line", { speed: speed(80, 60) }, []],
    [
      "a slow line of the browser",
      { speed: speed(3, 60) },
      ["Your own line is the narrow part: 3.0 Mbit/s between this browser and the server"],
    ],
    [
      "a slow line of the machine",
      { speed: speed(80, 0.4) },
      ["The machine’s line is the narrow part: 0.4 Mbit/s between the server and the machine"],
    ],
    [
      "an agent that is away",
      { agent: { status: "disconnected", lifecycle_state: "ready" } },
      ["The agent is not connected"],
    ],
    [
      "lost packets",
      { lights: lights([value("loss", "7 %", "warning")]) },
      ["7 % of the packets between the server and the machine are lost"],
    ],
    [
      "a stale reading",
      {
        lights: lights([value("loss", "7 %", "unknown"), value("round trip", "900 ms", "unknown")]),
      },
      [],
    ],
    [
      "a busy machine",
      {
        lights: lights(FINE, [
          value("load", "7.10 per core", "bad"),
          value("disk", "50 % of 9 GiB"),
        ]),
      },
      ["The machine itself is busy: load 7.10 per core"],
    ],
    ["a clock that is off", { lights: lights(FINE, [value("clock", "+90.0 s", "bad")]) }, []],
    [
      "running startup scripts",
      { agent: { status: "connected", lifecycle_state: "starting" } },
      ["The startup scripts are still running"],
    ],
    ["a far server", { browserMs: 180 }, ["You are 180 ms away from the server"]],
    [
      "a nearer proxy",
      { browserMs: 180, nearer: { name: "Sydney", ms: 12 } },
      ["The proxy Sydney answers you in 12 ms instead of 180"],
    ],
    ["a proxy that is hardly nearer", { browserMs: 30, nearer: { name: "Sydney", ms: 12 } }, []],
    [
      "a far machine",
      { lights: lights([value("round trip", "310 ms to the server", "warning")]) },
      ["The machine is 310 ms away from the server"],
    ],
    [
      "a relayed connection",
      { lights: lights([value("way", "2 relayed, 1 direct", "warning")]) },
      ["Some clients reach the machine through the relay only"],
    ],
    [
      "a deployment without direct connections",
      { lights: lights([value("way", "2 relayed, 0 direct", "warning")]), directDisabled: true },
      ["All connections use the relay: this deployment turned direct ones off"],
    ],
    ["an agent without readings", { lights: null, browserMs: null }, []],
  ] as const)("of %s", (_, change, expected) => {
    expect(titles(change as unknown as Partial<Measured>)).toEqual(expected);
  });

  it("names lost packets before the distance, and gives each one advice", () => {
    const findings = diagnose(
      measured({ lights: lights([value("loss", "3 %", "warning")]), browserMs: 400 }),
    );
    expect(findings.map((item) => item.title.split(" ")[0])).toEqual(["3", "You"]);
    expect(findings.every((item) => item.advice.endsWith("."))).toBe(true);
  });
});

it.each([
  ["46 ms to the server", "good", 46],
  ["46 ms to the server", "unknown", null],
  ["", "good", null],
] as const)("reads %j (%s) as %j", (text, status, expected) => {
  expect(numberOf(lights([value("round trip", text, status)]), "round trip")).toBe(expected);
});
