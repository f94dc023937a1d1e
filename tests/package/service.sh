# An installed server, run as its unit would be, and used as its users would. For scripts to source.
#
#   root      the root folder that it is installed in
#   enter     how to run a program in it: (chroot "$root"), or () to run it from outside
#   work      a folder of ours, for the log
#
# The ports are free ones, chosen by the server; the environment wins over its file and flags.
# shellcheck shell=bash

pid=
state=/var/lib/lockd

fail() {
  echo "FAILED: $*" >&2
  [[ ! -s $work/server.log ]] || sed 's/^/  server: /' "$work/server.log" >&2
  exit 1
}

# What the unit runs, with systemd's %S, and with folders as they are seen from here.
exec_start() {
  local from_here=${root%/}
  [[ ${#enter[@]} -eq 0 ]] || from_here=
  sed -n 's/^ExecStart=//p' "$unit" |
    sed -E "s,%S,/var/lib,; s,(^| )/(usr/local/)?,\1$from_here/,g"
}

# Somebody without rights, with a state of his own, as the unit has it; where we may choose.
as_nobody() {
  local -a by=()
  mkdir -p "$(dirname "$root$state")"
  mkdir -p --mode=0700 "$root$state"
  if [[ $(id -u) -eq 0 ]]; then
    chown -R 65534:65534 "$root$state"
    by=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs)
  fi
  exec "${enter[@]}" "${by[@]}" "$@"
}

start_service() {
  local -a command
  read -ra command <<<"$(exec_start)"
  [[ ${#command[@]} -gt 0 ]] || fail "$unit has no ExecStart"
  : >"$work/server.log"
  as_nobody env LOCKD_SERVER_PORT=0 LOCKD_SERVER_HTTP_ADDR=127.0.0.1:0 LOCKD_SERVER_SHUTDOWN_TIMEOUT=1 \
    "${command[@]}" 2>"$work/server.log" &
  pid=$!
  wait_for_ports
}

wait_for_ports() {
  local deadline=$((SECONDS + 60))
  until port=$(sed -nE 's/.* listening host.* port="?([0-9]+).*/\1/p' "$work/server.log") &&
    http=$(sed -nE 's/.*listening http.* port="?([0-9]+).*/\1/p' "$work/server.log") &&
    [[ -n $port && -n $http ]]; do
    kill -0 "$pid" 2>/dev/null || fail "the server does not start"
    [[ $SECONDS -lt $deadline ]] || fail "the server does not listen"
    sleep 0.05
  done
}

# As systemd does; it has to end well.
stop_service() {
  local status=0
  kill -TERM "$pid"
  wait "$pid" || status=$?
  pid=
  [[ $status -eq 0 ]] || fail "stopped with status $status"
}

# One request of the line protocol on descriptor 3; prints the reply.
ask() {
  local reply
  printf '%s\n' "$@" >&3
  IFS= read -r -t 30 reply <&3 || fail "no answer to '$*'"
  printf '%s\n' "$reply"
}

connect() { exec 3<>"/dev/tcp/127.0.0.1/$port"; }

call() { curl --silent --show-error --fail-with-body --max-time 30 "http://127.0.0.1:$http$1" "${@:2}"; }

# Takes a lock by lines and a reservation by HTTP, and leaves both.
take_locks() {
  local reply
  connect
  reply=$(ask l smoke-lines "5 600")
  [[ $reply =~ ^ok\ ([0-9a-f]{32})\ 600$ ]] || fail "a lock by lines: $reply"
  token=${BASH_REMATCH[1]}
  reply=$(call /v1/acquire -d '{"key":"smoke-http","holder":"cart-7","ttl_ms":600000}')
  [[ $reply =~ \"token\":([0-9]+) ]] || fail "a reservation by HTTP: $reply"
  fence=${BASH_REMATCH[1]}
}

# After another start of the server: both are held by who held them.
expect_locks_kept() {
  local reply
  reply=$(call "/v1/fence?key=smoke-http")
  [[ $reply == *'"held":true'*"\"token\":$fence"* ]] || fail "the reservation is lost: $reply"
  connect
  reply=$(ask n smoke-lines "$token 600")
  [[ $reply == ok\ * ]] || fail "the lock is lost: $reply"
}

release_locks() {
  [[ $(ask r smoke-lines "$token") == ok ]] || fail "not released"
  call /v1/release -d "{\"key\":\"smoke-http\",\"holder\":\"cart-7\",\"token\":$fence}" >/dev/null
  exec 3>&-
}

lockctl() {
  local program=/usr/bin/lockctl
  [[ ${#enter[@]} -gt 0 ]] || program=$root$bin/lockctl
  "${enter[@]}" env LOCKD_SERVERS="127.0.0.1:$port" "$program" "$@"
}

# While take_locks()'s are held.
use_lockctl() {
  local status=0 said
  said=$(lockctl run smoke-run -- sh -c 'echo "fence $LOCKD_FENCE"; exit 7') || status=$?
  [[ $status -eq 7 && $said =~ ^fence\ [0-9]+$ ]] || fail "lockctl run: '$said', status $status"
  status=0
  lockctl run -n -E 75 smoke-lines -- true || status=$?
  [[ $status -eq 75 ]] || fail "lockctl run -n of a held lock: status $status"
  lockctl ping >/dev/null || fail "lockctl ping"
}
