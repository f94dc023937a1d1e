// A key goes to the server that CRC-32 says, by any client.

package interop

import (
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/mtingers/dflockd/client"
)

func TestShardsByTheirCheckValues(t *testing.T) {
	expect(t, client.CRC32Shard("my-key", 3), 2)
	expect(t, client.CRC32Shard("orders/42", 5), 1)
	expect(t, client.CRC32Shard("my-job", 4), 0)
	expect(t, client.CRC32Shard("clé-日本", 3), 2)
}

func TestKeysLandWhereCrc32Says(t *testing.T) {
	t.Parallel()
	servers := []*server{startServer(t), startServer(t)}
	for _, key := range manyKeys() {
		acquire(t, newLock(t, key, servers...))
	}
	for number, s := range servers {
		expect(t, s.held(), keysOfShard(number, len(servers)))
	}
}

func manyKeys() []string {
	keys := []string{"my-key", "orders/42", "my-job", "clé-日本"}
	for number := range 16 {
		keys = append(keys, fmt.Sprintf("stone-%d", number))
	}
	return keys
}

func keysOfShard(number, servers int) []string {
	keys := slices.DeleteFunc(manyKeys(), func(key string) bool {
		return crc32.ChecksumIEEE([]byte(key))%uint32(servers) != uint32(number)
	})
	slices.Sort(keys)
	return keys
}
