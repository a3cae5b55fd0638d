# Makes the workspace's folder. FOLDER: its path.
set -eu
umask 077
mkdir -p "$FOLDER/home"
: > "$FOLDER/.coder-local-process"
