// When a session or token was last used, as precisely as it is known.
import { Ago } from "../../ui/Ago";

/** The server records a use at most once an hour (`_TOUCH_EVERY` of coder/coderd/services/access/authentication.py). */
const RECORDED_MS = 3_600_000;

/** "never", "within the last hour", or the recorded time. */
export function LastUsed({ at }: { at: string }) {
  const recorded = Date.parse(at);
  if (recorded > 0 && Date.now() - recorded < RECORDED_MS)
    return <span title="Uses are recorded once an hour.">within the last hour</span>;
  return <Ago at={at} />;
}
