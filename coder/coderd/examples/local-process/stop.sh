# Ends the agent and everything that was started in it. FOLDER: the workspace's folder.
set -u

# Processes of the workspace: the agent's group, and on Linux whatever carries the workspace's mark. What ended but
# was not collected by its parent yet (state Z) does not count.
members() {
  if [ -n "$leader" ]; then
    ps -A -o pid= -o pgid= -o stat= 2>/dev/null | awk -v leader="$leader" '$2 == leader && $3 !~ /^Z/ { print $1 }'
  fi
  grep -lszFx "CODER_LOCAL_PROCESS=$FOLDER" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3
}

# Waits up to $1 tenths of a second for all of them to end.
gone_within() {
  left="$1"
  while [ -n "$(members)" ]; do
    if [ "$left" -le 0 ]; then
      return 1
    fi
    left=$((left - 1))
    sleep 0.1
  done
  return 0
}

leader=""
if [ -s "$FOLDER/agent.pid" ]; then
  leader="$(cat "$FOLDER/agent.pid")"
  if [ -s "$FOLDER/agent.started" ] && [ "$(ps -o lstart= -p "$leader" 2>/dev/null)" != "$(cat "$FOLDER/agent.started")" ]; then
    leader=""
  fi
fi

# The agent first: it runs the shutdown scripts and closes its sessions, which may take half a minute.
if [ -n "$leader" ]; then
  kill -TERM "$leader" 2>/dev/null
  left=300
  while [ "$left" -gt 0 ]; do
    case "$(ps -o stat= -p "$leader" 2>/dev/null)" in
      "" | Z*) break ;;
    esac
    left=$((left - 1))
    sleep 0.1
  done
fi
for signal in TERM KILL; do
  for pid in $(members); do
    kill "-$signal" "$pid" 2>/dev/null
  done
  if gone_within 30; then
    break
  fi
done
rm -f "$FOLDER/agent.pid" "$FOLDER/agent.started" "$FOLDER/init.sh"
if [ -n "$(members)" ]; then
  echo "some processes of the workspace could not be ended" >&2
  exit 1
fi
echo "agent ended"
