const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) {
    value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return value;
});

/**
 * The CRC-32 of a text's UTF-8 bytes as 8 hex digits: what the server keeps of a cell's source.
 *
 * A page that is not served over TLS has no digest of the browser's own.
 */
export function checksum(text: string): string {
  let value = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) {
    value = TABLE[(value ^ byte) & 0xff] ^ (value >>> 8);
  }
  return ((value ^ 0xffffffff) >>> 0).toString(16).padStart(8, '0');
}
