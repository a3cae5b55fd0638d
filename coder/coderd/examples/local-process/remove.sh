# Removes the workspace's folder, and only a folder that prepare.sh made. FOLDER: its path.
set -eu
if [ -f "$FOLDER/.coder-local-process" ]; then
  rm -rf -- "$FOLDER"
fi
