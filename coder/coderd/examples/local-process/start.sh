# Starts the agent in a session of its own, so that it outlives the provisioner.
# FOLDER: the workspace's folder. CODER_AGENT_TOKEN, CODER_AGENT_URL: where the agent belongs.
# CODER_BINARY: the program, or empty. INIT_SCRIPT: what other machines run; used when there is no program here.
set -eu
umask 077
mkdir -p "$FOLDER/home"
rm -f "$FOLDER/agent.pid" "$FOLDER/agent.started"

binary="$CODER_BINARY"
if [ -z "$binary" ]; then
  binary="$(command -v coder || true)"
fi
if [ -n "$binary" ] && [ ! -x "$binary" ]; then
  echo "coder_binary: $binary is not a program that can be run here" >&2
  exit 1
fi

if command -v setsid >/dev/null 2>&1; then
  session="setsid"
elif command -v perl >/dev/null 2>&1; then
  session="perl -MPOSIX -e POSIX::setsid();exec@ARGV"
else
  echo "neither setsid nor perl is here; one of them is needed to keep the agent running" >&2
  exit 1
fi

printf '%s\n' "$INIT_SCRIPT" > "$FOLDER/init.sh"

# The provisioner's own environment holds secrets of the build. The agent, and every shell in it, gets only this.
set -- \
  "HOME=$FOLDER/home" \
  "PATH=$PATH" \
  "USER=$(id -un)" \
  "LOGNAME=$(id -un)" \
  "SHELL=${SHELL:-/bin/sh}" \
  "LANG=${LANG:-C.UTF-8}" \
  "BINARY_DIR=$FOLDER" \
  "CODER_LOCAL_PROCESS=$FOLDER" \
  "CODER_AGENT_AUTH=token" \
  "CODER_AGENT_URL=$CODER_AGENT_URL" \
  "CODER_AGENT_TOKEN=$CODER_AGENT_TOKEN"
for name in TMPDIR SSL_CERT_FILE SSL_CERT_DIR HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
  eval "value=\${$name:-}"
  if [ -n "$value" ]; then
    set -- "$@" "$name=$value"
  fi
done

# A program that unpacks itself would do so anew in every workspace's home: half of its start. Where this user's own
# cache has one that can be run, the agent takes that. An unusable cache must not be named: the program would refuse it.
cache="${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/coder/dist"
for one in "$cache"/*/coder; do
  if [ -O "$cache" ] && [ -f "$one" ] && [ -x "$one" ]; then
    set -- "$@" "CODER_BINARY_CACHE=$cache"
    break
  fi
done

cd "$FOLDER/home"
# The new session's leader writes its own number: that is the process group to end later.
nohup $session env -i "$@" /bin/sh -c '
  echo $$ > "$1/agent.pid.new"
  mv "$1/agent.pid.new" "$1/agent.pid"
  if [ -n "$2" ]; then
    exec "$2" agent
  fi
  exec /bin/sh "$1/init.sh"
' agent "$FOLDER" "$binary" >> "$FOLDER/agent.log" 2>&1 < /dev/null &

tries=0
while [ ! -s "$FOLDER/agent.pid" ]; do
  tries=$((tries + 1))
  if [ "$tries" -gt 100 ]; then
    echo "the agent did not start; see $FOLDER/agent.log" >&2
    exit 1
  fi
  sleep 0.05
done
pid="$(cat "$FOLDER/agent.pid")"
# A number may be given to another process one day; with its start time it is never mistaken.
ps -o lstart= -p "$pid" > "$FOLDER/agent.started" 2>/dev/null || true
echo "agent started as process $pid, log in $FOLDER/agent.log"
