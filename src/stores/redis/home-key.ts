const SLOTS = 16_384;
const TAG_TRIES = 1_000_000;

/**
 * How the keys of a home begin. The text in braces decides the slot of a key, so all keys of a home lie in one. The tags of the
 * homes are chosen so that their slots have equal distances: nodes with equal ranges of slots get equal numbers of homes.
 */
export function homeKey(prefix: string, home: number, homes: number): string {
  const from = Math.floor((home * SLOTS) / homes);
  const to = Math.floor(((home + 1) * SLOTS) / homes);
  for (let tries = 0; tries < TAG_TRIES; tries++) {
    const tag = `${prefix}.${home}${tries === 0 ? "" : `.${tries}`}`;
    const slot = slotOf(tag);
    if (slot >= from && slot < to) return `{${tag}}`;
  }
  throw new Error(`no tag for home ${home} of ${homes}`);
}

/** The slot of a tag: CRC-16 (XMODEM) modulo 16,384. */
function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++)
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc % SLOTS;
}
