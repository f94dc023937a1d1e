# For tests in bash: members of etcd and servers on loopback, and how they are asked. Sourced; what
# sources it sets `server`, the program, before it starts any. LOCKD_ETCD names another etcd than
# Debian's.
#
# shellcheck shell=bash

directory=$(mktemp -d)
declare -A pids=()
used_ports=()

finish() {
  status=$?
  for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
  [[ $status -eq 0 ]] || tail -n 40 "$directory"/*.log >&2
  rm -rf "$directory"
}
trap finish EXIT

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

ms() { echo $(($(date +%s%N) / 1000000)); }

# Sets REPLY to one that nobody listens on.
free_port() {
  while true; do
    REPLY=$((20000 + RANDOM % 12000))
    [[ " ${used_ports[*]:-} " == *" $REPLY "* ]] && continue
    (exec 9<>"/dev/tcp/127.0.0.1/$REPLY") 2>/dev/null && continue
    used_ports+=("$REPLY")
    return
  done
}

# ask PORT COMMAND KEY ARGUMENT: on a connection of its own; its reply, or nothing.
ask() {
  local port=$1 reply=""
  shift
  trap '' PIPE  # whoever begins anew may close before it is asked
  { exec 9<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || return 0
  printf '%s\n%s\n%s\n' "$@" 2>/dev/null >&9 || true
  IFS= read -r -t 5 -u 9 reply || true
  exec 9>&-
  echo "$reply"
}

# await WORDS COMMAND...: until it succeeds, for a minute; else it fails with the words.
await() {
  local what=$1 deadline=$(($(ms) + 60000))
  shift
  until "$@"; do
    [[ $(ms) -lt $deadline ]] || fail "$what"
    sleep 0.05
  done
}

# run_etcd NAME SCHEME CLIENT_PORT PEER_PORT CLUSTER FLAG...
run_etcd() {
  local name=$1 clients=$2://127.0.0.1:$3 peers=http://127.0.0.1:$4 cluster=$5
  shift 5
  "${LOCKD_ETCD:-/usr/bin/etcd}" --name "$name" --data-dir "$directory/$name" --log-level error \
    --snapshot-count 5000 --listen-client-urls "$clients" --advertise-client-urls "$clients" \
    --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" \
    --initial-cluster "$cluster" "$@" >>"$directory/$name.log" 2>&1 &
  pids[$name]=$!
  disown
}

# run_server NAME PORT ENDPOINTS FLAG...
run_server() {
  local name=$1 port=$2 endpoints=$3
  shift 3
  "$server" --host 127.0.0.1 --port "$port" --advertise-addr "127.0.0.1:$port" \
    --http-addr off --etcd "$endpoints" "$@" >>"$directory/$name.log" 2>&1 &
  pids[$name]=$!
  disown
}

# Three members, m0 to m2, and the ports of three servers; sets `ports` and `endpoints`.
start_members() {
  local clients=() peers=() cluster="" node
  ports=() endpoints=""
  for node in 0 1 2; do
    free_port && clients+=("$REPLY")
    free_port && peers+=("$REPLY")
    free_port && ports+=("$REPLY")
    cluster+="m$node=http://127.0.0.1:${peers[node]},"
    endpoints+="127.0.0.1:${clients[node]},"
  done
  endpoints=${endpoints%,}
  for node in 0 1 2; do
    run_etcd "m$node" http "${clients[node]}" "${peers[node]}" "${cluster%,}"
  done
}

# find_leader NODE...: sets `leader` to who says that it leads, among those.
find_leader() {
  local deadline=$(($(ms) + 60000)) node
  while [[ $(ms) -lt $deadline ]]; do
    for node in "$@"; do
      [[ $(ask "${ports[node]}" barrier "" "") == ok ]] || continue
      leader=$node
      return
    done
  done
  fail "nobody leads"
}

# Sets `others` to all nodes but this one.
all_but() {
  local node
  others=()
  for node in 0 1 2; do [[ $node == "$1" ]] || others+=("$node"); done
}
