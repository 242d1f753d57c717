const SLOTS = 16_384
const POLYNOMIAL = 0x1021

/** The CRC16 of every byte, in the variant of Redis Cluster (XMODEM). */
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1
  return crc & 0xffff
})

const encoder = new TextEncoder()

/** slotOfName returns the Redis Cluster slot of a name without braces. */
export function slotOfName(name: string): number {
  let crc = 0
  for (const byte of encoder.encode(name)) {
    crc = ((crc << 8) ^ table[(crc >> 8) ^ byte]) & 0xffff
  }
  return crc % SLOTS
}
