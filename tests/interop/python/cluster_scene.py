"""A scene whose servers are those of a cluster, which cases share: each has keys of its own."""

from scene import Scene
from server import Looks

KEY_MAX = 256


class Unsuitable(Exception):
    """The case cannot be played on servers that others use; says why."""


class ClusterScene(Scene):
    """`first` is the node that the first server() of the case is, whether it leads or not."""

    def __init__(self, api, cluster, first, name):
        super().__init__(api, None, None)
        self._cluster = cluster
        self._next = first
        self._prefix = f"{name}-"
        self.keys = {}  # as the case calls them, by what the servers know them by

    def server(self, *flags):
        if flags:
            raise Unsuitable("start servers with flags of their own")
        node = self._next % len(self._cluster.addresses)
        self._next += 1
        self._servers.append(Node(self._cluster, node, self))
        return self._servers[-1]

    def own(self, key):
        """The same key for the same case, and for no other; the longest stay the longest."""
        name = (self._prefix + key)[:max(KEY_MAX, len(key))]
        self.keys[name] = key
        return name

    def connection(self):
        conn = super().connection()
        self._clients[-1] = OwnConnection(conn, self)
        return self._clients[-1]

    def process(self, key, lease):
        return super().process(self.own(key), lease)

    def _client(self, class_name, key, **options):
        return super()._client(class_name, self.own(key), **options)


class Node(Looks):
    """A server of the cluster. What is held and who waits, its leader knows."""

    def __init__(self, cluster, node, scene):
        self._cluster = cluster
        self._scene = scene
        self.address = cluster.addresses[node]

    def stats(self):
        stats = self._cluster.leaders_stats()
        for kind in ("locks", "semaphores"):
            stats[kind] = [{**entry, "key": self._scene.keys[entry["key"]]}
                           for entry in stats[kind] if entry["key"] in self._scene.keys]
        return stats

    def terminate(self):
        raise Unsuitable("stop their server")

    def stop(self):
        """It is the cluster's."""

    def kill(self):
        """It is the cluster's."""


class OwnConnection:
    """A bare connection, whose functions take the case's own keys."""

    def __init__(self, connection, scene):
        self._connection = connection
        self._scene = scene

    def __getattr__(self, name):
        function = getattr(self._connection, name)
        if name == "close":
            return function
        return lambda *args, **options: function(*map(self._scene.own, args[:1]), *args[1:],
                                                 **options)
