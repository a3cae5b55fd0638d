# Sourced by the commands in this folder: a virtual environment with everything pinned, Debian packages if permitted
# to install them, terraform. Each step is skipped if nothing has changed.
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="${CODER_VENV:-$ROOT/.venv}"
PYTHON="$VENV/bin/python"
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/coder"
# Folders of our Python sources, for ruff and mypy; mypy's list is in pyproject.toml.
PYTHON_ROOMS=(coder tests scripts build)

# Some images set it to keep layers small; here every process of a build or test would recompile its imports.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

BESIDE=()
# Usage: begin_beside COMMAND … — runs it in the background; $! is its process, for wait_beside. It and all that
# it starts end with the script in any case: each is a separate process group.
begin_beside() {
  trap end_beside EXIT
  set -m
  "$@" </dev/null &
  set +m
  BESIDE[$!]=1
}
# Usage: wait_beside PROCESS — its exit code.
wait_beside() {
  local code=0
  wait "$1" || code=$?
  unset "BESIDE[$1]"
  return $code
}
end_beside() {
  local process
  for process in ${BESIDE[@]+"${!BESIDE[@]}"}; do kill -- "-$process" 2>/dev/null || true; done
}

# Usage: need_debian COMMAND=package ... — installs the packages of missing commands when root on Debian.
need_debian() {
  local missing=() pair
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null 2>&1 || PATH="$PATH:/usr/sbin:/sbin" command -v "${pair%%=*}" >/dev/null 2>&1 || missing+=("${pair#*=}")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing Debian packages: ${missing[*]}"
    apt-get update -qq >/dev/null 2>&1 || true
    # Programs, not services: RUNLEVEL prevents starting installed services. In a separate session: a partial
    # installation is worse than one that continues after the script has ended.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive setsid --wait apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
      { say "could not install: ${missing[*]}"; return 1; }
  else
    say "missing programs; install the packages: ${missing[*]}"
    return 1
  fi
}

# Usage: need_platforms LIST — what build/build.py --platform LIST requires beside Python. It names what is missing.
need_platforms() {
  case "$1" in *all*|*linux-*) need_debian debootstrap=debootstrap || true ;; esac
  case "$1" in *all*|*windows-*|*darwin-*) need_debian mvn=maven || true ;; esac
  case "$1" in *all*|*windows-*) need_debian cargo=cargo perl=perl make=make x86_64-w64-mingw32-gcc=gcc-mingw-w64-x86-64 || true ;; esac
}

find_python() {
  local candidate
  for candidate in "${CODER_PYTHON:-}" python3.13 python3.12 python3.11 python3; do
    [ -n "$candidate" ] || continue
    if command -v "$candidate" >/dev/null 2>&1 &&
       "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}

# Usage: install_packages REQUIREMENT … — as constraints.txt pins them. uv takes a tenth of pip's time and processor
# (docs/decisions/dependencies.md); if uv is unavailable, has no equivalent of pip's settings, or cannot reach the
# index, pip installs.
install_packages() {
  local constraints="$ROOT/scripts/constraints.txt" pip=("$PYTHON" -m pip --disable-pip-version-check) told=""
  # Most installed modules are never imported; the others compile at import.
  if told="$(uv_settings)" && "${pip[@]}" install -q --no-compile -c "$constraints" uv >/dev/null 2>&1; then
    local variables=() one
    while IFS= read -r one; do variables+=("$one"); done <<<"$told"
    env "${variables[@]}" "$PYTHON" -m uv pip install -q --python "$PYTHON" -c "$constraints" "$@" && return 0
    say "uv could not install the packages (see above); pip tries"
  fi
  "${pip[@]}" install -q --no-compile -c "$constraints" "$@"
}

# Prints NAME=value lines for uv from pip's files and PIP_ variables; fails if a setting has no equivalent.
uv_settings() {
  local listed
  listed="$("$PYTHON" -m pip --disable-pip-version-check config list 2>/dev/null)" || return 1
  "$PYTHON" "$ROOT/scripts/uv_settings.py" <<<"$listed"
}

# Usage: need_venv [extra] — the project and its pinned dependencies in $VENV.
need_venv() {
  local extra="${1:-}" stamp want python
  want="$(cat "$ROOT/pyproject.toml" "$ROOT/scripts/constraints.txt" | sha256sum | cut -d' ' -f1) $ROOT $extra"
  stamp="$VENV/.coder-stamp"
  if [ -x "$PYTHON" ] && [ -f "$stamp" ]; then
    local have; have="$(cat "$stamp")"
    # An environment with the development tools also satisfies the plain one.
    [ "$have" = "$want" ] || [ "$have" = "${want% *} dev" ] && return 0
  fi
  python="$(find_python)" || { need_debian python3=python3 python3-venv=python3-venv || true; python="$(find_python)"; } ||
    die "Python 3.11 or newer with venv is needed; on Debian: apt-get install python3 python3-venv"
  say "preparing the Python environment …"
  [ -x "$PYTHON" ] || "$python" -m venv "$VENV"
  install_packages -e "$ROOT${extra:+[$extra]}" ||
    die "the Python dependencies could not be installed (see above)"
  printf '%s' "$want" >"$stamp"
}

TERRAFORM_VERSION=1.11.4
# SHA-256 of the unpacked program, not of the archive, because the program is what runs.
TERRAFORM_SHA256_linux_amd64=268000fca5c61021c6396893d9483007ba589ad9d0aaccbd7dfa8c78bf7dbe23

# Uses terraform (or OpenTofu) on PATH, or downloads one with a pinned checksum, or prints a clear message.
need_terraform() {
  command -v terraform >/dev/null 2>&1 && return 0
  command -v tofu >/dev/null 2>&1 && return 0
  local dir="$CACHE/terraform/$TERRAFORM_VERSION"
  [ -x "$dir/terraform" ] || fetch_terraform "$dir" ||
    die "terraform is not on PATH and could not be fetched. Install terraform >= 1.5 or OpenTofu and run this again."
  export PATH="$dir:$PATH"
}

fetch_terraform() {
  local dir="$1" platform want url temporary
  platform="$(uname -s | tr '[:upper:]' '[:lower:]')_$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')"
  want="TERRAFORM_SHA256_$platform"
  [ -n "${!want:-}" ] || { say "no pinned terraform for $platform"; return 1; }
  url="https://releases.hashicorp.com/terraform/$TERRAFORM_VERSION/terraform_${TERRAFORM_VERSION}_$platform.zip"
  say "fetching terraform $TERRAFORM_VERSION …"
  temporary="$(mktemp -d)"
  curl -fsSL --max-time 120 -o "$temporary/terraform.zip" "$url" 2>/dev/null &&
    python3 -m zipfile -e "$temporary/terraform.zip" "$temporary" &&
    printf '%s  %s\n' "${!want}" "$temporary/terraform" | sha256sum -c --status &&
    mkdir -p "$dir" && install -m 755 "$temporary/terraform" "$dir/terraform"
  local result=$?
  rm -rf "$temporary"
  return $result
}

# Usage: need_npm_packages FOLDER — installs FOLDER's lock file into its node_modules, without install scripts.
need_npm_packages() {
  command -v npm >/dev/null 2>&1 || need_debian npm=npm node=nodejs || return 1
  (cd "$ROOT/$1" && { [ node_modules/.package-lock.json -nt package-lock.json ] ||
    npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error >&2; })
}

# Usage: need_dashboard_packages [--checks] — packages to build the dashboard, with --checks also those for checks. Not
# `npm ci`, which rejects a lock file without the other platforms' optional packages. Versions are the lock's.
need_dashboard_packages() {
  command -v npm >/dev/null 2>&1 || need_debian npm=npm node=nodejs || return 1
  (cd "$ROOT/coder/dashboard" && {
    [ node_modules/.package-lock.json -nt package-lock.json ] && { [ -z "${1:-}" ] || [ -e node_modules/prettier ]; } ||
      npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error $([ -n "${1:-}" ] || echo --omit=dev) >&2
  })
}
