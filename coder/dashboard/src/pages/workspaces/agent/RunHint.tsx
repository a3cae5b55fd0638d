// A hint on where to run the command that attaches a machine, with a warning if its address is reachable from
// the server's own machine only.
import { Notice } from "../../../ui/Notice";

export function RunHint({ command }: { command: string | undefined }) {
  const host = hostOf(command ?? "");
  return (
    <>
      {isLoopback(host) ? (
        <Notice kind="warning" title={`Only the server’s own machine can reach ${host}`}>
          To attach another machine, an administrator has to set an access URL that the machine can
          reach: <code>CODER_ACCESS_URL</code>.
        </Notice>
      ) : null}
      <p className="text-sm text-muted">
        Run this command on the machine that you want to attach. It stays attached while the command
        runs, and the state above shows “Connected”. Install a service to keep it attached after a
        reboot.
      </p>
    </>
  );
}

/** The host from which a command fetches its script. */
export function hostOf(command: string): string {
  return /\bhttps?:\/\/(\[[^\]]*\]|[^/:"'\s]+)/i.exec(command)?.[1]?.toLowerCase() ?? "";
}

/** Loopback addresses (RFC 1122, 4291, 6761). */
export function isLoopback(host: string): boolean {
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(host)
  );
}
