// Many requests of the same kind, only so many at a time: a browser queues the rest anyway, and others wait behind it.

export const AT_ONCE = 6;

/**
 * Does something for each item. What fails does not keep the others from being done.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => Promise<unknown>} act
 * @param {number} [atOnce]
 * @returns {Promise<{ item: T, error: unknown }[]>} What failed, and why.
 */
export async function each(items, act, atOnce = AT_ONCE) {
  const waiting = items.values();
  /** @type {{ item: T, error: unknown }[]} */
  const failed = [];
  const worker = async () => {
    for (const item of waiting) await act(item).catch((error) => failed.push({ item, error }));
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return failed;
}
