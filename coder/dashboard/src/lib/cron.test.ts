import { describe, expect, it } from "vitest";

import { readCron, writeCron } from "./cron";

describe("daily schedules", () => {
  it.each([
    [
      "CRON_TZ=Europe/Berlin 30 9 * * 1-5",
      { timezone: "Europe/Berlin", time: "09:30", days: [1, 2, 3, 4, 5] },
    ],
    ["0 7 * * *", { timezone: "UTC", time: "07:00", days: [0, 1, 2, 3, 4, 5, 6] }],
    ["CRON_TZ=UTC 5 23 * * 0,3,6-7", { timezone: "UTC", time: "23:05", days: [0, 3, 6] }],
  ])("parse %s", (text, daily) => {
    expect(readCron(text)).toEqual(daily);
  });

  it.each(["", "@daily", "0 7 1 * *", "*/5 * * * *", "0 7 * * MON"])("reject %j", (text) => {
    expect(readCron(text)).toBeNull();
  });

  it.each([
    { timezone: "America/New_York", time: "08:05", days: [1, 5] },
    { timezone: "UTC", time: "00:00", days: [0, 1, 2, 3, 4, 5, 6] },
  ])("round-trip %j", (daily) => {
    expect(readCron(writeCron(daily))).toEqual(daily);
  });
});
