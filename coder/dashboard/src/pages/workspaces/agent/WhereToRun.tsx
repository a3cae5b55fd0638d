// Where the command that attaches a machine is run, and for how long; and a warning when only the server's own machine
// can reach the address that stands in it.
import { Notice } from "../../../ui/Notice";

export function WhereToRun({ command }: { command: string | undefined }) {
  const host = hostOf(command ?? "");
  return (
    <>
      {isLoopback(host) ? (
        <Notice kind="warning" title={`Only the machine this server runs on can reach ${host}.`}>
          To attach another one, whoever runs this deployment gives it an address that the machine
          can reach: the access URL, <code>CODER_ACCESS_URL</code>.
        </Notice>
      ) : null}
      <p className="text-sm text-muted">
        Run it on the machine you want to attach. The machine is attached as long as the command
        runs: the state above then is “Connected”. A service keeps it attached after a reboot, too.
      </p>
    </>
  );
}

/** The host of the address a command fetches its script from. */
export function hostOf(command: string): string {
  return /\bhttps?:\/\/(\[[^\]]*\]|[^/:"'\s]+)/i.exec(command)?.[1]?.toLowerCase() ?? "";
}

/** Addresses that mean the machine that asks (RFC 1122, 4291, 6761). */
export function isLoopback(host: string): boolean {
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(host)
  );
}
