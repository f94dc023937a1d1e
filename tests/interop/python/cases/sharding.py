"""A key goes to the server that CRC-32 says, by any client."""

import zlib

from cases import case

KEYS = ["my-key", "orders/42", "my-job", "clé-日本"] + [f"stone-{n}" for n in range(16)]


@case()
def keys_land_where_crc_32_says(scene):
    servers = [scene.server() for _ in range(3)]
    for key in KEYS:
        assert scene.lock(key, at=servers).acquire()
    for number, server in enumerate(servers):
        assert server.held() == {key for key in KEYS if shard(key, 3) == number}
    # Written out, for the formula above is the clients' own.
    assert {"my-key", "clé-日本"} <= servers[2].held()


@case()
def a_key_is_one_lock_across_servers(scene):
    servers = [scene.server() for _ in range(2)]
    for key in KEYS:
        assert scene.lock(key, at=servers).acquire()
    for key in KEYS:
        assert not scene.lock(key, at=servers).acquire()
    assert all(server.held() for server in servers)


@case("semaphores")
def semaphores_likewise(scene):
    servers = [scene.server() for _ in range(3)]
    for key in KEYS:
        assert scene.semaphore(key, 2, at=servers).acquire()
    for number, server in enumerate(servers):
        held = {semaphore["key"] for semaphore in server.stats()["semaphores"]}
        assert held == {key for key in KEYS if shard(key, 3) == number}


def shard(key, servers):
    return zlib.crc32(key.encode()) % servers
