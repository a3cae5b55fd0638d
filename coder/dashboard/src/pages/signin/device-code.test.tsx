import { act, render } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { NoAnswer } from "../../api/client";
import { DeviceCode } from "./DeviceCode";

const device = {
  device_code: "d",
  user_code: "AB-CD",
  verification_uri: "https://forge.test",
  interval: 1,
};
beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("stops polling once the page is left", async () => {
  let refuse = (_: Error): void => undefined;
  const exchange = vi.fn(
    () =>
      new Promise<void>((_, fail) => {
        refuse = fail;
      }),
  );
  const failed = vi.fn();
  const { unmount } = render(<DeviceCode device={device} exchange={exchange} onFailure={failed} />);
  await act(() => vi.advanceTimersByTimeAsync(1000));
  expect(exchange).toHaveBeenCalledOnce();
  unmount();
  refuse(new NoAnswer("The server is unreachable.", "", true));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(exchange).toHaveBeenCalledOnce();
  expect(failed).not.toHaveBeenCalled();
});
