package lockd

import (
	"hash/crc32"
	"net"
	"strconv"
	"strings"
)

// DefaultPort is the port of addresses that name none.
const DefaultPort = 6388

// clusterSizeMax is of how many servers a cluster may be.
const clusterSizeMax = 16

// ShardOf is the position of the server that has the key, in a list of that many: the CRC-32 of the
// key modulo their number, as in every client of these servers. It panics if servers is not
// positive.
func ShardOf(key string, servers int) int {
	if servers <= 0 {
		panic("lockd: ShardOf of no servers")
	}
	return int(uint64(crc32.ChecksumIEEE([]byte(key))) % uint64(servers))
}

// parseAddress takes host, host:port, [v6]:port and a bare v6 address; it returns the host, and
// host:port.
func parseAddress(text string) (host, address string, err error) {
	host, port := text, strconv.Itoa(DefaultPort)
	switch {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		host = text[1 : len(text)-1]
	case strings.HasPrefix(text, "[") || strings.Count(text, ":") == 1:
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", "", invalid("no address: " + shown(text))
		}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || host == "" || strings.ContainsAny(host, "[]/ \t\r\n") {
		return "", "", invalid("no address: " + shown(text))
	}
	return host, net.JoinHostPort(host, strconv.FormatUint(number, 10)), nil
}
