// lockd-ha: a server that is one of several, on etcd.
#include "cluster/cluster_gate.h"
#include "cluster/etcd_cluster.h"
#include "server/program.h"

int main(int argc, char** argv) {
  return lockd::run_program(
      argc, argv,
      {.profile_of = [](const char*) { return lockd::Profile::lockd_ha; },
       .cluster = {.open = lockd::join_etcd_cluster, .make_gates = lockd::make_cluster_gates},
       .export_chain = lockd::export_chain,
       .import_chain = lockd::import_chain});
}
