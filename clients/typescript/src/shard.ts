/**
 * The position of the server that has the key, in a list of that many: CRC-32 of the key, modulo
 * their number, as all clients do.
 */
export function shardOf(key: string, servers: number): number {
  let crc = 0xffffffff;
  for (const byte of Buffer.from(key)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (~crc >>> 0) % servers;
}
