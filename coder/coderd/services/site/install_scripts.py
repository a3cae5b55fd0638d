"""`/install.sh` and `/install.ps1`: install the `coder` command of a deployment on a user's machine.

The scripts download from the server they came from, so that command and server have the same version. They verify the
server's checksum, which detects a damaged download, not a malicious server. A script writes nothing before it has been
read completely.
"""

from __future__ import annotations

_POSIX = r"""#!/bin/sh
# Installs the coder command of @URL@ (@VERSION@). Options: see --help.
set -eu

URL='@URL@'
HAVE='@VERSION@'

usage() {
	cat <<EOF
Installs coder $HAVE from $URL

  curl -fsSL $URL/install.sh | sh -s -- [options]

  --method detect|standalone|deb  how to install (detect: deb with dpkg and as root, else standalone)
  --prefix DIR                    standalone: install into DIR/bin (default /usr/local, else ~/.local)
  --full                          fail unless the server has the full program
  --slim                          install only the agent and the command line (half the size)
  --version VERSION               fail unless the server has this version
  --dry-run                       print the steps without executing them
EOF
}

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

run() {
	if [ -n "$dry" ]; then
		echo "+ $*"
	else
		"$@"
	fi
}

# Run as root if the target is not writable.
run_as_owner() {
	if [ -n "$sudo" ]; then
		run $sudo "$@"
	else
		run "$@"
	fi
}

fetch() {
	if command -v curl >/dev/null 2>&1; then
		run curl -fsSL -o "$2" "$1"
	elif command -v wget >/dev/null 2>&1; then
		run wget -qO "$2" "$1"
	elif command -v busybox >/dev/null 2>&1; then
		run busybox wget -qO "$2" "$1"
	else
		fail "curl, wget or busybox is required"
	fi
}

# Check whether the server has a file, also in a dry run: the steps depend on it.
offers() {
	(dry= && fetch "$URL/bin/$1.sha256" /dev/null) >/dev/null 2>&1
}

check() {
	[ -z "$dry" ] || return 0
	want="$(cut -d' ' -f1 "$2")"
	if command -v sha256sum >/dev/null 2>&1; then
		got="$(sha256sum "$1" | cut -d' ' -f1)"
	elif command -v shasum >/dev/null 2>&1; then
		got="$(shasum -a 256 "$1" | cut -d' ' -f1)"
	else
		echo "install.sh: sha256sum is missing, so the checksum is not verified" >&2
		return 0
	fi
	[ "$want" = "$got" ] || fail "the download is damaged (checksum $got, not $want); run this again"
}

main() {
	method=detect prefix= edition= dry= sudo= asked=
	while [ $# -gt 0 ]; do
		case "$1" in
		--method | --prefix | --version)
			[ $# -gt 1 ] || fail "$1 needs a value"
			case "$1" in
			--method) method=$2 ;;
			--prefix) prefix=$2 ;;
			--version) asked=$2 ;;
			esac
			shift
			;;
		--method=*) method=${1#*=} ;;
		--prefix=*) prefix=${1#*=} ;;
		--version=*) asked=${1#*=} ;;
		--full) edition=full- ;;
		--slim) edition=slim ;;
		--dry-run) dry=1 ;;
		-h | --help) usage; return 0 ;;
		*) usage >&2; fail "unknown option $1" ;;
		esac
		shift
	done
	[ -z "$asked" ] || [ "v${asked#v}" = "$HAVE" ] || fail "this server has $HAVE, not $asked"

	case "$(uname -s)" in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "$(uname -s) is not supported" ;;
	esac
	case "$(uname -m)" in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	armv7l | armv8l) arch=armv7 ;;
	*) fail "there is no program for $(uname -m); with Python 3.11 and a compiler: pipx install FILE.whl (no server)" ;;
	esac

	prefix=${prefix:-${CODER_INSTALL_PREFIX:-}}
	if [ "$method" = detect ]; then
		method=standalone
		[ "$os" != linux ] || [ -n "$prefix" ] || [ "$(id -u)" != 0 ] || ! command -v dpkg >/dev/null 2>&1 ||
			! offers "coder-linux-$arch.deb" || method=deb
	fi
	folder="$(mktemp -d)"
	trap 'rm -rf "$folder"' EXIT
	case "$method" in
	deb)
		[ "$os" = linux ] && command -v dpkg >/dev/null 2>&1 || fail "dpkg is missing; use --method standalone"
		name=coder-linux-$arch.deb
		;;
	standalone)
		note=
		case "$edition" in
		full-) ;;
		slim) edition= ;;
		*)
			if offers "coder-full-$os-$arch"; then
				edition=full-
			elif offers "coder-$os-$arch"; then
				note="The server has no full program for $os/$arch: agent and command line are installed"
			fi
			;;
		esac
		name=coder-$edition$os-$arch
		;;
	*) fail "--method is detect, standalone or deb, not $method" ;;
	esac

	installed=Installed
	[ -z "$dry" ] || installed="Would have installed"
	echo "Fetching $URL/bin/$name"
	fetch "$URL/bin/$name" "$folder/coder" ||
		fail "the server has no $name (or did not answer); $URL/bin/$name says how to get it"
	fetch "$URL/bin/$name.sha256" "$folder/coder.sha256" || fail "the server sent no checksum of $name"
	check "$folder/coder" "$folder/coder.sha256"

	if [ "$method" = deb ]; then
		[ "$(id -u)" = 0 ] || sudo=sudo
		run_as_owner dpkg -i "$folder/coder"
		echo "$installed the package coder-py. Log in with: coder login $URL"
		return 0
	fi
	target=${prefix:-/usr/local}/bin
	above=$target
	while [ ! -e "$above" ]; do above=$(dirname "$above"); done
	if [ ! -w "$above" ]; then
		if [ -z "$prefix" ] && ! command -v sudo >/dev/null 2>&1; then
			target=$HOME/.local/bin
		else
			command -v sudo >/dev/null 2>&1 || fail "$target cannot be written; use --prefix"
			sudo=sudo
		fi
	fi
	run_as_owner mkdir -p "$target"
	# Copy and rename: a running coder keeps its old file.
	run_as_owner cp "$folder/coder" "$target/.coder.new"
	run_as_owner chmod 755 "$target/.coder.new"
	run_as_owner mv -f "$target/.coder.new" "$target/coder"
	[ -z "$note" ] || echo "$note"
	echo "$installed $target/coder. Log in with: $target/coder login $URL"
	case ":$PATH:" in
	*":$target:"*) ;;
	*) echo "$target is not in PATH" ;;
	esac
}

main "$@"
"""

_POWERSHELL = r"""# Installs the coder command of @URL@ (@VERSION@): iwr -useb @URL@/install.ps1 | iex
$ErrorActionPreference = "Stop"
$ProgressPreference = "SilentlyContinue"
$url = "@URL@"
$protocols = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
[Net.ServicePointManager]::SecurityProtocol = $protocols

$arch = if ($env:PROCESSOR_ARCHITECTURE -eq "ARM64") { "arm64" } else { "amd64" }
$name = "coder-windows-$arch.exe"
$folder = Join-Path $env:LOCALAPPDATA "coder"
New-Item -ItemType Directory -Force -Path $folder | Out-Null
$file = Join-Path $folder "coder.exe.new"
try {
	Invoke-WebRequest -UseBasicParsing -Uri "$url/bin/$name" -OutFile $file
	$sum = (Invoke-WebRequest -UseBasicParsing -Uri "$url/bin/$name.sha256").Content
} catch {
	throw "The server has no $name. Where Python 3.11 is: pipx install FILE.whl. ($($_.Exception.Message))"
}
if ($sum -is [byte[]]) { $sum = [Text.Encoding]::ASCII.GetString($sum) }
$want = $sum.Split(" ")[0]
$got = (Get-FileHash -Algorithm SHA256 -Path $file).Hash.ToLower()
if ($got -ne $want) {
	Remove-Item $file
	throw "The download is damaged (checksum $got, not $want); run this again."
}
Move-Item -Force $file (Join-Path $folder "coder.exe")
$path = [Environment]::GetEnvironmentVariable("Path", "User")
if (($path -split ";") -notcontains $folder) {
	[Environment]::SetEnvironmentVariable("Path", "$path;$folder", "User")
	Write-Output "$folder was added to PATH. Open a new window to use it."
}
Write-Output "Installed coder @VERSION@. Log in with: coder login $url"
"""


def install_sh(access_url: str, version: str) -> str:
    """Return the script for Linux and macOS, for any POSIX shell."""
    return _filled(_POSIX, access_url, version)


def install_ps1(access_url: str, version: str) -> str:
    """Return the script for Windows, for PowerShell 5 and later."""
    return _filled(_POWERSHELL, access_url, version)


def _filled(script: str, access_url: str, version: str) -> str:
    return script.replace("@URL@", access_url.rstrip("/")).replace("@VERSION@", version)
