"""Scripts that fetch the agent's program and start it, and the commands that run such a script on a machine.

One script per platform (docs/protocol/agents.md#starting). A script retries until the server answers, verifies the
downloaded program, and hands over to `coder agent`. A script that fails stays for a day, so that the reason can still
be read in the machine's log. Scripts report each step in a few lines; shell tracing is opt-in. A folder created by the
script is removed when the script fails or is interrupted. After the hand-over the script no longer exists, so the agent
removes the folder when it exits. The token is never part of a script: it comes in the environment. No POSIX script
contains a single quote: templates wrap it in them (`sh -c '${init_script}'`).
"""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import quote

PLATFORMS = (
    ("linux", "amd64"),
    ("linux", "arm64"),
    ("linux", "armv7"),
    ("darwin", "amd64"),
    ("darwin", "arm64"),
    ("windows", "amd64"),
    ("windows", "arm64"),
)

_POSIX_HEAD = """#!/usr/bin/env sh
# Fetches the agent of a workspace and starts it. CODER_AGENT_TOKEN must be set.
set -eu
# Commands are traced on request only.
[ -z "${CODER_INIT_TRACE:-}" ] || set -x

say() {
	echo "coder: $1" >&2
}

# A folder created for this run alone: it is removed with its content.
MADE_DIR=
discard() {
	cd / && rm -f "$1/$BINARY_NAME" && rmdir "$1"
}
tidy() {
	[ -z "$MADE_DIR" ] || discard "$MADE_DIR" >/dev/null 2>&1 || true
}

linger() {
	status=$?
	if [ "$status" -ne 0 ]; then
		set +x
		echo "=== the start script of the agent ended with status $status; waiting a day so that this can be read" >&2
		sleep 86400
	fi
	tidy
}
trap linger EXIT

# A user at the terminal has read the output.
interrupted() {
	trap - EXIT
	tidy
	exit 130
}
trap interrupted INT

# A server without a program for this machine answers with an error: status 22 of curl, 8 of wget. An installed one is
# used then.
use_installed() {
	[ "$1" -eq 22 ] || [ "$1" -eq 8 ] || return 1
	installed=$(command -v coder) || {
		echo "error: the server has no program at $BINARY_URL" >&2
		echo "error: add one there, or install the wheel here (pipx install FILE.whl), which is used then" >&2
		return 1
	}
	echo "using $installed: the server has no program for this machine" >&2
	cat >"$BINARY_NAME" <<-EOF
	#!/bin/sh
	exec "$installed" "\\$@"
	EOF
}

# Half a download or a changed file differs from the checksum of the server. Without a tool to compute it, or from a
# server without checksums, the program is only asked for its version below.
checksum_of() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1"
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 "$1"
	fi
}
is_genuine() {
	wanted=$(fetch_text "$BINARY_URL.sha256" 2>/dev/null) || return 0
	wanted=${wanted%%[!0-9a-f]*}
	[ "${#wanted}" -eq 64 ] || return 0
	computed=$(checksum_of "$BINARY_NAME" 2>/dev/null) || return 0
	computed=${computed%%[!0-9a-f]*}
	[ "${#computed}" -eq 64 ] || return 0
	[ "$wanted" != "$computed" ] || return 0
	echo "error: $BINARY_URL gave a file with the SHA-256 $computed, and the server says $wanted" >&2
	return 1
}
"""

_LINUX_FETCH = """
BINARY_NAME=coder
BINARY_URL="${ACCESS_URL}bin/coder-linux-${ARCH}"

may_run_in() {
	echo "#!/bin/sh" >"$1/$BINARY_NAME" && chmod +x "$1/$BINARY_NAME" && "$1/$BINARY_NAME"
}

# The first folder that allows execution: many machines mount /tmp noexec, some make it read-only. Without one (or
# without /bin/sh to test it), the first folder that could be created is used.
find_folder() {
	for parent in "${TMPDIR:-/tmp}/" /var/tmp/ "${HOME:-}/."; do
		folder=$(mktemp -d "${parent}coder.XXXXXX") || continue
		if may_run_in "$folder"; then
			tidy
			MADE_DIR=$folder
			return
		fi
		if [ -z "$MADE_DIR" ]; then MADE_DIR=$folder; else discard "$folder" || true; fi
	done
}
if [ -z "${BINARY_DIR:-}" ]; then
	find_folder 2>/dev/null || true
	BINARY_DIR=$MADE_DIR
	if [ -z "$BINARY_DIR" ]; then
		echo "error: no folder can be made in ${TMPDIR:-/tmp}, /var/tmp and ${HOME:-/}; choose one with BINARY_DIR" >&2
		exit 1
	fi
fi
cd "$BINARY_DIR"
say "fetching the agent from $BINARY_URL into $BINARY_DIR"

fetch_text() {
	if command -v curl >/dev/null 2>&1; then
		curl -fsSL "$1"
	elif command -v wget >/dev/null 2>&1; then
		wget -q "$1" -O -
	else
		busybox wget -q "$1" -O -
	fi
}

# The first available download program, best first.
while :; do
	status=0
	if command -v curl >/dev/null 2>&1; then
		curl -fsSL --compressed "$BINARY_URL" -o "$BINARY_NAME" || status=$?
	elif command -v wget >/dev/null 2>&1; then
		wget -q "$BINARY_URL" -O "$BINARY_NAME" || status=$?
	elif command -v busybox >/dev/null 2>&1; then
		busybox wget -q "$BINARY_URL" -O "$BINARY_NAME" || status=$?
	else
		echo "error: neither curl nor wget nor busybox is here to fetch $BINARY_URL" >&2
		exit 127
	fi
	if [ "$status" -eq 0 ]; then
		is_genuine && break
	else
		use_installed "$status" && break
		echo "error: fetching $BINARY_URL failed with status $status" >&2
	fi
	echo "error: next try in 30 seconds" >&2
	sleep 30
done
"""

_DARWIN_FETCH = """
BINARY_DIR=$(mktemp -d -t coder.XXXXXX)
BINARY_NAME=coder
MADE_DIR=$BINARY_DIR
BINARY_URL="${ACCESS_URL}bin/coder-darwin-${ARCH}"
cd "$BINARY_DIR"
say "fetching the agent from $BINARY_URL into $BINARY_DIR"

fetch_text() {
	curl -fsSL "$1"
}

while :; do
	status=0
	curl -fsSL --compressed "$BINARY_URL" -o "$BINARY_NAME" || status=$?
	if [ "$status" -eq 0 ]; then
		is_genuine && break
	else
		use_installed "$status" && break
		echo "error: fetching $BINARY_URL failed with status $status" >&2
	fi
	echo "error: next try in 30 seconds" >&2
	sleep 30
done
"""

_CHMOD = """
if ! chmod +x "$BINARY_NAME"; then
	echo "error: $BINARY_DIR/$BINARY_NAME cannot be made executable; choose another folder with BINARY_DIR" >&2
	exit 1
fi
"""

_LINUX_CAPABILITIES = """
# On request only, and never a reason to fail: raw network access for what runs in the workspace.
if [ -n "${USE_CAP_NET_ADMIN:-}" ]; then
	if [ "$(id -u)" -eq 0 ]; then
		if ! capsh --has-p=CAP_NET_ADMIN >/dev/null 2>&1; then
			echo "warning: running as root without CAP_NET_ADMIN" >&2
		fi
	elif command -v sudo >/dev/null 2>&1 && command -v setcap >/dev/null 2>&1 &&
		command -v capsh >/dev/null 2>&1 && sudo -n true >/dev/null 2>&1; then
		sudo -n setcap CAP_NET_ADMIN=+ep "./$BINARY_NAME" || echo "warning: CAP_NET_ADMIN could not be given" >&2
	else
		echo "warning: CAP_NET_ADMIN needs setcap, capsh and sudo without a password" >&2
	fi
fi
"""

_POSIX_TAIL = """
export CODER_AGENT_AUTH="${AUTH_TYPE}"
export CODER_AGENT_URL="${ACCESS_URL}"

# A proxy may answer with an error page: check that this is the program, and that it runs here.
case $("./$BINARY_NAME" --version 2>/dev/null | head -n1) in
*Coder*) ;;
*)
	echo "error: what $BINARY_URL gave is not the agent (it does not answer to --version)" >&2
	case "$(uname -m)" in
	x86_64 | amd64) machine=amd64 ;;
	aarch64 | arm64) machine=arm64 ;;
	armv7l | armv8l) machine=armv7 ;;
	*) machine=$(uname -m) ;;
	esac
	if [ "$machine" != "${ARCH}" ]; then
		echo "error: this machine is $machine, and this script is for ${ARCH}: use the script for its own platform" >&2
	else
		echo "error: its output: $("./$BINARY_NAME" --version 2>&1 | head -n1)" >&2
		echo "error: if $BINARY_DIR does not allow execution, choose another folder with BINARY_DIR" >&2
	fi
	exit 2
	;;
esac

if [ -n "$MADE_DIR" ]; then
	export CODER_AGENT_REMOVE_PROGRAM="$MADE_DIR/$BINARY_NAME"
fi
say "connecting to ${ACCESS_URL}; this machine is attached as long as this runs"
exec "./$BINARY_NAME" agent
"""

_WINDOWS = """# Fetches the agent of a workspace and starts it. CODER_AGENT_TOKEN must be set.
$ErrorActionPreference = "Stop"
$ProgressPreference = "SilentlyContinue"

trap {
	Write-Error -ErrorAction Continue -ErrorRecord $_
	Write-Output "=== the agent's start script failed; waiting a day so that this can be read"
	Start-Sleep -Seconds 86400
}

$protocols = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
[Net.ServicePointManager]::SecurityProtocol = $protocols
# Windows' own proxy settings hold no login: a proxy that wants one gets that of the user.
$proxy = [Net.WebRequest]::DefaultWebProxy
if ($proxy) { $proxy.Credentials = [Net.CredentialCache]::DefaultNetworkCredentials }
$binaryUrl = "${ACCESS_URL}bin/coder-windows-${ARCH}.exe"
# VS Code's remote extension requires this name: it finds the parent of its shell by it.
$binary = Join-Path $env:TEMP "sshd.exe"

$fetched = "$binary.new"
if ("${ARCH}" -eq "arm64") {
	Write-Output "coder: a server without a program for arm64 gives the one for amd64, which Windows 11 on arm64 runs"
}
Write-Output "coder: fetching the agent from $binaryUrl to $binary"
while ($true) {
	try {
		Invoke-WebRequest -UseBasicParsing -Uri $binaryUrl -OutFile $fetched
		$sums = "$binary.sha256"
		Invoke-WebRequest -UseBasicParsing -Uri "$binaryUrl.sha256" -OutFile $sums
		$wanted = ((Get-Content -Path $sums -TotalCount 1) -split " ")[0]
		$hash = (Get-FileHash -Algorithm SHA256 -Path $fetched).Hash
		if ($hash -ne $wanted) { throw "the file has the SHA-256 $hash, the server says $wanted" }
		break
	} catch {
		$status = 0
		if ($_.Exception.Response) { $status = [int]$_.Exception.Response.StatusCode }
		if ($status -eq 404) {
			Write-Output "error: the server has no program for Windows at $binaryUrl"
			Write-Output "error: an administrator can build it: build/build.py --platform windows-amd64"
		}
		Write-Output "error: fetching $binaryUrl failed ($($_.Exception.Message)), next try in 30 seconds"
		Start-Sleep -Seconds 30
	}
}

# Windows does not replace a running program, but renames it.
Remove-Item -Path "$binary.old*" -ErrorAction SilentlyContinue
if (Test-Path -Path $binary) { Move-Item -Path $binary -Destination "$binary.old$(Get-Random)" }
Move-Item -Path $fetched -Destination $binary

if (Get-Command Set-MpPreference -ErrorAction SilentlyContinue) {
	# Scanning every byte of a build is slow. Not allowed everywhere, and not needed.
	try { Set-MpPreference -ExclusionPath $binary } catch { Write-Output "note: no exclusion from Defender: $_" }
}

$env:CODER_AGENT_AUTH = "${AUTH_TYPE}"
$env:CODER_AGENT_URL = "${ACCESS_URL}"

# A proxy may answer with an error page: check that this is the program.
$version = & $binary --version | Select-Object -First 1
if ($version -notlike "*Coder*") {
	throw "what $binaryUrl gave is not the agent (it does not answer to --version)"
}

Write-Output "coder: connecting to ${ACCESS_URL}; this machine is attached until you sign out"
Write-Output "coder: to keep it attached, run as administrator: & `"$binary`" agent install --agent-url ${ACCESS_URL}"
# In a container the script is the main process and has to stay; elsewhere the agent must outlive this window.
$inContainer = (Get-Service -Name cexecsvc -ErrorAction SilentlyContinue) -ne $null
if ($inContainer) {
	Start-Process -FilePath $binary -ArgumentList "agent" -Wait -NoNewWindow
} else {
	$agent = Start-Process -FilePath $binary -ArgumentList "agent" -WindowStyle Hidden -PassThru
	# A program that cannot start, or is refused, exits immediately.
	if ($agent.WaitForExit(10000)) {
		throw "the agent ended with code $($agent.ExitCode); the reason: $binary agent"
	}
}
"""

_LINUX = _POSIX_HEAD + _LINUX_FETCH + _CHMOD + _LINUX_CAPABILITIES + _POSIX_TAIL
_DARWIN = _POSIX_HEAD + _DARWIN_FETCH + _CHMOD + _POSIX_TAIL
_BY_SYSTEM = {"linux": _LINUX, "darwin": _DARWIN, "windows": _WINDOWS}


def init_script(system: str, arch: str, access_url: str, auth_type: str = "token") -> str | None:
    """Return the script for a platform (names in any case); None for an unsupported one."""
    system, arch = system.lower(), arch.lower()
    if (system, arch) not in PLATFORMS:
        return None
    values = {"ACCESS_URL": access_url.rstrip("/") + "/", "ARCH": arch, "AUTH_TYPE": auth_type}
    script = _BY_SYSTEM[system]
    for name, value in values.items():
        script = script.replace("${" + name + "}", value)
    return script


def content_digest(body: bytes) -> str:
    """Return the header's value. Upstream encodes twice (hex of base64), and clients compare it as it is."""
    text = base64.b64encode(hashlib.sha256(body).digest())
    return f"sha256:{text.hex()}"


def attach_command(access_url: str, system: str, arch: str, token: str) -> str:
    """Return the command that a user runs on the machine to attach it as the workspace."""
    # A template chose both words; neither may contain shell syntax.
    script = f"{access_url.rstrip('/')}/api/v2/init-script/{quote(system, safe='')}/{quote(arch, safe='')}"
    if system == "windows":
        return f'$env:CODER_AGENT_TOKEN="{token}"; iwr -useb "{script}" | iex'
    return f'curl -fsSL "{script}" | CODER_AGENT_TOKEN="{token}" sh'
