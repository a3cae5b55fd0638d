// A code to enter at a provider's page. Polls the server every few seconds for the confirmation.
import { ExternalLink } from "lucide-react";
import { useEffect, useRef } from "react";

import { ApiError } from "../../api/client";
import { buttonClass, Spinner } from "../../ui/Button";
import { CopyButton } from "../../ui/text/CodeBox";
import { safeImage } from "../../ui/Avatar";

interface Device {
  device_code: string;
  user_code: string;
  verification_uri: string;
  interval: number;
}

interface DeviceCodeProps {
  device: Device;
  /** A single attempt; throws until the user has confirmed. */
  exchange: () => Promise<void>;
  onFailure: (error: Error) => void;
}

const MIN_INTERVAL_S = 5; // the default of RFC 8628 if the provider sends none

export function DeviceCode({ device, exchange, onFailure }: DeviceCodeProps) {
  const attempt = useRef({ exchange, onFailure });
  useEffect(() => {
    attempt.current = { exchange, onFailure };
  });
  useEffect(() => {
    let pause = Math.max(device.interval || MIN_INTERVAL_S, 1);
    let timer: number;
    let unmounted = false; // an attempt in flight starts no other attempt
    const pollAgain = () => {
      if (unmounted) return;
      timer = window.setTimeout(() => {
        attempt.current.exchange().catch((caught: unknown) => {
          if (unmounted) return;
          const error = caught instanceof Error ? caught : new Error(String(caught));
          const message = error instanceof ApiError ? `${error.message} ${error.detail}` : "";
          if (message.includes("slow_down")) pause += MIN_INTERVAL_S;
          else if (error instanceof ApiError && !message.includes("authorization_pending")) {
            attempt.current.onFailure(error);
            return;
          }
          pollAgain();
        });
      }, pause * 1000);
    };
    pollAgain();
    return () => {
      unmounted = true;
      window.clearTimeout(timer);
    };
  }, [device]);
  const address = safeImage(device.verification_uri); // http(s) only
  return (
    <>
      <p className="text-base text-muted">Copy this code, then enter it on the provider’s page.</p>
      <div className="flex items-center justify-between gap-2 rounded-lg border border-line bg-inset px-4 py-3">
        <code className="text-xl font-semibold tracking-[0.15em]" data-testid="user-code">
          {device.user_code}
        </code>
        <CopyButton text={device.user_code} />
      </div>
      {address ? (
        <a className={buttonClass("primary")} href={address} target="_blank" rel="noreferrer">
          Open and paste
          <ExternalLink aria-hidden="true" />
        </a>
      ) : null}
      <p role="status" className="flex items-center gap-2 text-sm text-muted">
        <Spinner />
        Waiting for your confirmation there…
      </p>
    </>
  );
}
