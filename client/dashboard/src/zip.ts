// A zip archive of files as they are, without compression (APPNOTE 6.3.3, sections 4.3.7 to 4.3.16).

export interface ZipEntry { name: string; content: Uint8Array }

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

export function crc32(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** Little-endian fields: [bytes, value]. */
function record(fields: [2 | 4, number][]): Uint8Array {
  const out = new DataView(new ArrayBuffer(fields.reduce((sum, [size]) => sum + size, 0)));
  let at = 0;
  for (const [size, value] of fields) {
    if (size === 2) out.setUint16(at, value, true); else out.setUint32(at, value, true);
    at += size;
  }
  return new Uint8Array(out.buffer);
}

/** Time and date as MS-DOS has them. */
const dosTime = (time: Date): [number, number] => [
  (time.getHours() << 11) | (time.getMinutes() << 5) | (time.getSeconds() >> 1),
  (Math.max(0, time.getFullYear() - 1980) << 9) | ((time.getMonth() + 1) << 5) | time.getDate(),
];

export function zip(entries: ZipEntry[], time: Date): Blob {
  const [clock, day] = dosTime(time);
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const { name, content } of entries) {
    const path = new TextEncoder().encode(name);
    // Version 2.0; names are UTF-8 (bit 11); stored.
    const common: [2 | 4, number][] = [[2, 20], [2, 1 << 11], [2, 0], [2, clock], [2, day], [4, crc32(content)],
      [4, content.length], [4, content.length], [2, path.length], [2, 0]];
    directory.push(record([[4, 0x02014b50], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]]), path);
    const local = record([[4, 0x04034b50], ...common]);
    parts.push(local, path, content);
    offset += local.length + path.length + content.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = record([[4, 0x06054b50], [2, 0], [2, 0], [2, entries.length], [2, entries.length], [4, size], [4, offset], [2, 0]]);
  return new Blob([...parts, ...directory, end] as BlobPart[], { type: "application/zip" });
}
